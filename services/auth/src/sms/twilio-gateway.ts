import type { TextMessage } from '../ports/sms-gateway.ts';
import type { Settings } from '../settings/settings.ts';
import { type FormAnswer, postForm } from './post-form.ts';
import type { SmsGatewayModule } from './sms-gateway-module.ts';

/** Answers of Twilio that say the message will not arrive. */
const lostStatuses = ['failed', 'undelivered'];

/** Twilio's Programmable Messaging, SMS and WhatsApp. @see https://www.twilio.com/docs/messaging/api/message-resource */
export const twilioGateway: SmsGatewayModule = {
  needs: ['smsTwilioAccountSid', 'smsTwilioAuthToken', 'smsTwilioMessageServiceSid'],
  create(settings) {
    const { smsTwilioAccountSid: account, smsTwilioAuthToken: token, smsTwilioUrl } = settings;
    const url = `${smsTwilioUrl.replace(/\/$/, '')}/2010-04-01/Accounts/${encodeURIComponent(account)}/Messages.json`;
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
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

function messageIdOf({ status, body }: FormAnswer): string {
  // Parsed boundary: a member that Twilio did not send, or not as text, is looked at by nobody.
  const answer = (typeof body === 'object' && body !== null ? body : {}) as {
    readonly sid?: unknown;
    readonly status?: unknown;
    readonly code?: unknown;
    readonly message?: unknown;
  };
  if (status !== 200 && status !== 201)
    throw new Error(
      `Twilio answered ${status}: ${String(answer.message ?? '')} (${String(answer.code ?? '')})`,
    );
  if (typeof answer.status === 'string' && lostStatuses.includes(answer.status))
    throw new Error(`Twilio answered that the message is ${answer.status}`);
  return typeof answer.sid === 'string' ? answer.sid : '';
}
