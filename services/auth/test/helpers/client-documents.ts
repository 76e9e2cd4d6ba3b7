import { createServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { makeCertificates } from '@tollgate/testkit/certificates';
import type t from 'tap';
import { oauthServer } from './oauth-clients.ts';

/** Settings of a server that fetches the documents of {@link startDocumentServer}. */
export const documentClients = {
  ...oauthServer,
  OAUTH_SERVER_ALLOW_CLIENT_ID_METADATA_DOCUMENTS: 'true',
  OAUTH_SERVER_PRIVATE_HOSTS: 'localhost',
} as const;

/** Members of a document; a text is sent as it is. */
type Published = Readonly<Record<string, unknown>> | string;

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Delays the response. */
  readonly until?: Promise<unknown>;
}

/** An https server for metadata documents of clients, which this process trusts from then on. */
export async function startDocumentServer(test: Pick<typeof t, 'teardown'>) {
  const { server: certificate, ca } = makeCertificates();
  setDefaultCACertificates([...getCACertificates('default'), ca.cert]);
  const documents = new Map<string, { readonly text: string; readonly reply: Reply }>();
  const requests: string[] = [];
  const tls = { cert: certificate.cert, key: certificate.key };
  const server = createServer(tls, async ({ url = '' }, response) => {
    requests.push(url);
    const { text = '', reply = { status: 404 } } = documents.get(url) ?? {};
    await reply.until;
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers });
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  test.teardown(stop);
  const address = server.address();
  const base = `https://localhost:${typeof address === 'object' ? address?.port : 0}`;
  return {
    base,
    requests,
    stop,
    /** Publishes a document at a path, and returns its URL. Members without `client_id` get it. */
    publish(path: string, published: Published, reply: Reply = {}): string {
      const url = `${base}${path}`;
      const members = {
        client_id: url,
        client_name: 'Assistant',
        redirect_uris: ['https://app.example.org/callback'],
      };
      const text = typeof published === 'string' ? published : JSON.stringify({ ...members, ...published });
      documents.set(path, { text, reply });
      return url;
    },
  };
}
