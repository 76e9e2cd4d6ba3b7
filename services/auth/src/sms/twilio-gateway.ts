import type { Settings } from '../settings/settings.ts';
import { type FormAnswer, postForm } from './post-form.ts';
import type { SmsGatewayModule, TextMessage } from './sms-gateway-module.ts';
import { twilioAnswerOf, twilioAuthorization, twilioRefusal } from './twilio-answer.ts';

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
