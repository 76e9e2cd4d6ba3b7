import type { Settings } from '../config/settings.ts';
import type { SmsGatewayModule, TextMessage } from './sms.ts';

/** A gateway that takes longer has lost the message, or its caller. */
const timeoutMs = 10_000;
/** What gateways answer has a few hundred bytes. */
const maxAnswerBytes = 64 * 1024;

/** What a gateway answered. */
export interface FormAnswer {
  readonly status: number;
  /** JSON, as nobody has looked at it; undefined when it was none. */
  readonly body: unknown;
}

/** Posts a form to the API of a vendor and reads its answer. Follows no redirects: the form carries secrets. */
export async function postForm(
  url: string,
  options: {
    readonly form: Readonly<Record<string, string>>;
    readonly headers: Readonly<Record<string, string>>;
  },
): Promise<FormAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'error',
    headers: { accept: 'application/json', ...options.headers },
    body: new URLSearchParams(options.form),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, body: parse(await readText(response)) };
}

async function readText(response: Response): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new Error(`the answer is longer than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What answers of Twilio say, of whatever product: a member that it did not send is looked at by nobody. */
export interface TwilioAnswer {
  readonly sid?: unknown;
  readonly status?: unknown;
  readonly valid?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

/** Reads the body of an answer. */
export function twilioAnswerOf({ body }: FormAnswer): TwilioAnswer {
  // Parsed boundary: all members are unknown.
  return (typeof body === 'object' && body !== null ? body : {}) as TwilioAnswer;
}

/** Says what Twilio refused, and why. */
export function twilioRefusal(answer: FormAnswer): Error {
  const { message, code } = twilioAnswerOf(answer);
  return new Error(`Twilio answered ${answer.status}: ${String(message ?? '')} (${String(code ?? '')})`);
}

/** The value of `Authorization` for an account. */
export function twilioAuthorization({ account, token }: { account: string; token: string }): string {
  return `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
}

/** Answers of Twilio that say the message will not arrive. */
const lostStatuses = ['failed', 'undelivered'];

/** Twilio's Programmable Messaging, SMS and WhatsApp. @see https://www.twilio.com/docs/messaging/api/message-resource */
export const twilioGateway: SmsGatewayModule = {
  needs: ['smsTwilioAccountSid', 'smsTwilioAuthToken', 'smsTwilioMessageServiceSid'],
  create(settings) {
    const { smsTwilioAccountSid: account, smsTwilioAuthToken: token, smsTwilioUrl } = settings;
    const url = `${smsTwilioUrl.replace(/\/$/, '')}/2010-04-01/Accounts/${encodeURIComponent(account)}/Messages.json`;
    const authorization = twilioAuthorization({ account, token });
    return {
      async send(message) {
        const form = formOf(message, settings);
        return { messageId: messageIdOf(await postForm(url, { form, headers: { authorization } })) };
      },
    };
  },
};

function formOf({ to, text, code, channel }: TextMessage, settings: Settings): Record<string, string> {
  const { smsTwilioMessageServiceSid: sender, smsTwilioContentSid: contentSid } = settings;
  if (channel === 'sms') return { To: `+${to}`, Channel: channel, From: sender, Body: text };
  const whatsapp = { To: `whatsapp:+${to}`, Channel: channel, From: whatsappSender(sender) };
  // Outside a conversation WhatsApp takes templates only.
  return contentSid === ''
    ? { ...whatsapp, Body: text }
    : { ...whatsapp, ContentSid: contentSid, ContentVariables: JSON.stringify({ 1: code }) };
}

/** A number is named with its channel; a messaging service (`MG…`) knows its own. */
function whatsappSender(sender: string): string {
  return sender.startsWith('+') ? `whatsapp:${sender}` : sender;
}

function messageIdOf(answer: FormAnswer): string {
  if (answer.status !== 200 && answer.status !== 201) throw twilioRefusal(answer);
  const { sid, status } = twilioAnswerOf(answer);
  if (typeof status === 'string' && lostStatuses.includes(status))
    throw new Error(`Twilio answered that the message is ${status}`);
  return typeof sid === 'string' ? sid : '';
}
