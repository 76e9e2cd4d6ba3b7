import { once } from 'node:events';
import { createServer } from 'node:http';

/** A received message. */
interface ArrivedText {
  /** Path of the request, including the account. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** Members of the form, by their names in Twilio's API. */
  readonly form: Readonly<Record<string, string>>;
}

/** A response of the gateway. Default: accepted. */
interface TwilioAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** A text message gateway with Twilio's API. */
export interface FakeTwilio {
  /** Base URL of its API. */
  readonly url: string;
  /** Received messages, including refused ones, oldest first. */
  readonly texts: readonly ArrivedText[];
  /** Sets the response from now on. */
  answer(answer: TwilioAnswer): void;
  /** Closes it with its connections. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a gateway on loopback. @see https://www.twilio.com/docs/messaging/api/message-resource */
export async function startTwilio(): Promise<FakeTwilio> {
  const texts: ArrivedText[] = [];
  let next: TwilioAnswer | undefined;
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const { url: path = '', headers } = incoming;
      const form = Object.fromEntries(new URLSearchParams(body));
      texts.push({ path, authorization: headers.authorization, form });
      const accepted = { status: 201, body: { sid: `SM${texts.length}`, status: 'queued' } };
      const { status, body: answer } = next ?? accepted;
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    texts,
    answer: (answer) => {
      next = answer;
    },
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
