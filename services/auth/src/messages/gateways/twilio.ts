import type { Settings } from '../../config/settings.ts';
import { type FormResponse, postForm, toObject } from '../../outbound/post-form.ts';
import type { SmsGatewayModule, TextMessage } from '../sms-gateway.ts';

function toError(response: FormResponse): Error {
  const { message, code } = toObject(response.body);
  return new Error(`Twilio answered ${response.status}: ${String(message ?? '')} (${String(code ?? '')})`);
}

function basicAuthorization(account: string, token: string): string {
  return `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
}

function isSuccess({ status }: FormResponse): boolean {
  return status === 200 || status === 201;
}

/** `failed`: statuses of a resource whose message does not arrive. */
function readMessageId(response: FormResponse, failed: readonly string[]): string {
  if (!isSuccess(response)) throw toError(response);
  const { sid, status } = toObject(response.body);
  if (typeof status === 'string' && failed.includes(status))
    throw new Error(`Twilio answered that the message is ${status}`);
  return typeof sid === 'string' ? sid : '';
}

/**
 * Twilio's Programmable Messaging, SMS and WhatsApp.
 * @see https://www.twilio.com/docs/messaging/api/message-resource
 */
export const twilioGateway: SmsGatewayModule = {
  channels: ['sms', 'whatsapp'],
  requiredSettings: ['smsTwilioAccountSid', 'smsTwilioAuthToken', 'smsTwilioMessageServiceSid'],
  create(settings) {
    const { smsTwilioAccountSid: account, smsTwilioAuthToken: token, smsTwilioUrl } = settings;
    const url = `${smsTwilioUrl.replace(/\/$/, '')}/2010-04-01/Accounts/${encodeURIComponent(account)}/Messages.json`;
    const headers = { authorization: basicAuthorization(account, token) };
    return {
      async send(message) {
        const response = await postForm(url, { form: toForm(message, settings), headers });
        return { messageId: readMessageId(response, ['failed', 'undelivered']) };
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

/** The verification has ended; a running one is `pending`. */
const failedVerifications = ['canceled', 'deleted', 'expired', 'failed', 'max_attempts_reached'];

/** Other values are rejected without a request. */
const codePattern = /^\d{4,10}$/;

/** Error code of a 429: no attempts are left. */
const maxAttemptsReached = 60_202;

/**
 * Twilio Verify, for SMS and WhatsApp: it generates the codes and texts, and verifies the codes.
 *
 * @see https://www.twilio.com/docs/verify/api
 */
export const twilioVerifyGateway: SmsGatewayModule = {
  channels: ['sms', 'whatsapp'],
  requiredSettings: [
    'smsTwilioVerifyAccountSid',
    'smsTwilioVerifyAuthToken',
    'smsTwilioVerifyMessageServiceSid',
  ],
  create(settings) {
    const { smsTwilioVerifyAccountSid: account, smsTwilioVerifyAuthToken: token } = settings;
    const service = encodeURIComponent(settings.smsTwilioVerifyMessageServiceSid);
    const url = `${settings.smsTwilioVerifyUrl.replace(/\/$/, '')}/v2/Services/${service}`;
    const headers = { authorization: basicAuthorization(account, token) };
    return {
      async send({ to, channel }) {
        const form = { To: `+${to}`, Channel: channel };
        const response = await postForm(`${url}/Verifications`, { form, headers });
        return { messageId: readMessageId(response, failedVerifications) };
      },
      async check({ to, code }) {
        if (!codePattern.test(code)) return false;
        const form = { To: `+${to}`, Code: code };
        return isApproved(await postForm(`${url}/VerificationCheck`, { form, headers }));
      },
    };
  },
};

function isApproved(response: FormResponse): boolean {
  const { status, valid, code } = toObject(response.body);
  if (response.status === 404 || (response.status === 429 && code === maxAttemptsReached)) return false;
  if (!isSuccess(response)) throw toError(response);
  return status === 'approved' && valid === true;
}
