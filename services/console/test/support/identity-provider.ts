import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { makeCertificates } from '@tollgate/testkit/certificates';
import type { Test } from 'tap';

/** The metadata and keys of an OpenID Connect provider, over TLS on loopback. */
export interface TestIdentityProvider {
  readonly issuer: string;
  /** PEM file with its CA. */
  readonly caFile: string;
  /** Replaces its documents by path; undefined removes one. */
  publish(path: string, document: unknown): void;
}

export const discoveryPath = '/.well-known/openid-configuration';

/** Starts a provider that publishes one key with this id; stopped when the test ends. */
export async function startIdentityProvider(t: Test, kid: string): Promise<TestIdentityProvider> {
  const certificates = makeCertificates();
  const documents = new Map<string, unknown>();
  const server = createServer(certificates.server, (request, response) => {
    const document = documents.get(request.url ?? '');
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
    certificates.remove();
  });
  const address = server.address();
  const issuer = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  documents.set('/jwks', { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256' }] });
  documents.set(discoveryPath, {
    ...{ issuer, jwks_uri: `${issuer}/jwks`, token_endpoint: `${issuer}/token` },
    authorization_endpoint: `${issuer}/authorize`,
  });
  return {
    issuer,
    caFile: certificates.ca.certFile,
    publish: (path, document) => void documents.set(path, document),
  };
}
