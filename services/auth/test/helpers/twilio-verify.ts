import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { startWebServer } from '@tollgate/testkit/web-server';
import type t from 'tap';

/** A received request. */
interface VerifyRequest {
  /** `Verifications` or `VerificationCheck`. */
  readonly resource: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly form: Readonly<Record<string, string>>;
}

/** Twilio Verify and the settings to use it. */
export interface TwilioVerify {
  /** Variables without `SVC_`. */
  readonly variables: Readonly<Record<string, string>>;
  readonly requests: readonly VerifyRequest[];
  /** The code sent to a phone. Throws if there is none. */
  codeOf(phone: string): string;
  /** Overrides responses. Undefined restores the default. */
  answer(answer: { readonly status: number; readonly body: unknown } | undefined): void;
}

/** Starts a fake of Twilio Verify. @see https://www.twilio.com/docs/verify/api */
export async function twilioVerify(test: Pick<typeof t, 'teardown'>): Promise<TwilioVerify> {
  const requests: VerifyRequest[] = [];
  const codes = new Map<string, string>();
  let next: { readonly status: number; readonly body: unknown } | undefined;

  function reply({ resource, form }: VerifyRequest): { readonly status: number; readonly body: unknown } {
    const { To = '', Code } = form;
    if (resource === 'Verifications') {
      codes.set(To, String(700_000 + requests.length));
      return { status: 201, body: { sid: `VE${requests.length}`, status: 'pending', valid: false } };
    }
    const known = codes.get(To);
    if (known === undefined)
      return { status: 404, body: { code: 20404, message: 'The requested resource was not found' } };
    if (known !== Code) return { status: 200, body: { sid: 'VE', status: 'pending', valid: false } };
    codes.delete(To);
    return { status: 200, body: { sid: 'VE', status: 'approved', valid: true } };
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = '', headers } = incoming;
    const form = Object.fromEntries(new URLSearchParams(await text(incoming)));
    const request = {
      resource: path.split('/').at(-1) ?? '',
      path,
      authorization: headers.authorization,
      form,
    };
    requests.push(request);
    const { status, body } = next ?? reply(request);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  const { port } = await startWebServer(test, (incoming, response) => void answer(incoming, response));
  return {
    variables: {
      SMS_PROVIDER: 'twilio_verify',
      SMS_TWILIO_VERIFY_URL: `http://127.0.0.1:${port}`,
      SMS_TWILIO_VERIFY_ACCOUNT_SID: 'AC2',
      SMS_TWILIO_VERIFY_AUTH_TOKEN: 'verify-secret',
      SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID: 'VA1',
      SMS_AUTOCONFIRM: 'false',
      EXTERNAL_PHONE_ENABLED: 'true',
    },
    requests,
    codeOf(phone) {
      const code = codes.get(`+${phone}`);
      if (code === undefined) throw new Error(`no code for ${phone}`);
      return code;
    },
    answer: (wanted) => {
      next = wanted;
    },
  };
}
