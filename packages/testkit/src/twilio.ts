import { startJsonServer } from './echo.ts';

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
  const server = await startJsonServer(({ path, headers, body }) => {
    texts.push({
      path,
      authorization: headers.authorization,
      form: Object.fromEntries(new URLSearchParams(body)),
    });
    return next ?? { status: 201, body: { sid: `SM${texts.length}`, status: 'queued' } };
  });
  return {
    ...server,
    texts,
    answer: (answer) => {
      next = answer;
    },
  };
}
