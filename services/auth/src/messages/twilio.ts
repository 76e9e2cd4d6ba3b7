import type { Settings } from '../config/settings.ts';
import type { SmsGatewayModule, TextMessage } from './sms.ts';

const timeoutMs = 10_000;
/** Responses have a few hundred bytes. */
const maxResponseBytes = 64 * 1024;

export interface FormResponse {
  readonly status: number;
  /** Unvalidated JSON; undefined for another content. */
  readonly body: unknown;
}

/** Posts a form. Redirects are errors, as the form contains secrets. */
export async function postForm(
  url: string,
  options: {
    readonly form: Readonly<Record<string, string>>;
    readonly headers: Readonly<Record<string, string>>;
  },
): Promise<FormResponse> {
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
    if (bytes > maxResponseBytes) throw new Error(`the response is longer than ${maxResponseBytes} bytes`);
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

/** Members of responses of all Twilio products. */
interface TwilioBody {
  readonly sid?: unknown;
  readonly status?: unknown;
  readonly valid?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

export function readTwilioBody({ body }: FormResponse): TwilioBody {
  // Parsed boundary: all members are unknown.
  return (typeof body === 'object' && body !== null ? body : {}) as TwilioBody;
}

export function twilioError(response: FormResponse): Error {
  const { message, code } = readTwilioBody(response);
  return new Error(`Twilio answered ${response.status}: ${String(message ?? '')} (${String(code ?? '')})`);
}

/** Value of the header `Authorization`. */
export function twilioAuthorization({ account, token }: { account: string; token: string }): string {
  return `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
}

/** The message will not arrive. */
const failedStatuses = ['failed', 'undelivered'];

/**
 * Twilio's Programmable Messaging, SMS and WhatsApp.
 * @see https://www.twilio.com/docs/messaging/api/message-resource
 */
export const twilioGateway: SmsGatewayModule = {
  requiredSettings: ['smsTwilioAccountSid', 'smsTwilioAuthToken', 'smsTwilioMessageServiceSid'],
  create(settings) {
    const { smsTwilioAccountSid: account, smsTwilioAuthToken: token, smsTwilioUrl } = settings;
    const url = `${smsTwilioUrl.replace(/\/$/, '')}/2010-04-01/Accounts/${encodeURIComponent(account)}/Messages.json`;
    const authorization = twilioAuthorization({ account, token });
    return {
      async send(message) {
        const form = toForm(message, settings);
        return { messageId: readMessageId(await postForm(url, { form, headers: { authorization } })) };
      },
    };
  },
};

function toForm({ to, text, code, channel }: TextMessage, settings: Settings): Record<string, string> {
  const { smsTwilioMessageServiceSid: sender, smsTwilioContentSid: contentSid } = settings;
  if (channel === 'sms') return { To: `+${to}`, Channel: channel, From: sender, Body: text };
  const whatsapp = { To: `whatsapp:+${to}`, Channel: channel, From: whatsappSender(sender) };
  // WhatsApp accepts only templates outside a conversation.
  return contentSid === ''
    ? { ...whatsapp, Body: text }
    : { ...whatsapp, ContentSid: contentSid, ContentVariables: JSON.stringify({ 1: code }) };
}

/** A number needs its channel; a messaging service (`MG…`) does not. */
function whatsappSender(sender: string): string {
  return sender.startsWith('+') ? `whatsapp:${sender}` : sender;
}

function readMessageId(response: FormResponse): string {
  if (response.status !== 200 && response.status !== 201) throw twilioError(response);
  const { sid, status } = readTwilioBody(response);
  if (typeof status === 'string' && failedStatuses.includes(status))
    throw new Error(`Twilio answered that the message is ${status}`);
  return typeof sid === 'string' ? sid : '';
}
