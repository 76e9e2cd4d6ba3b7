import { postForm, toObject, toObjects } from '../../outbound/post-form.ts';
import type { SmsGatewayModule } from '../sms-gateway.ts';

/** `type=text` has the characters of GSM 03.38 only, to which ASCII can be mapped. */
const ascii = /^[\0-\x7f]*$/;

/**
 * SMS by Vonage (Nexmo). Rejected messages have status 200 as well.
 *
 * @see https://developer.vonage.com/en/api/sms
 */
export const vonageGateway: SmsGatewayModule = {
  channels: ['sms'],
  requiredSettings: ['smsVonageApiKey', 'smsVonageApiSecret', 'smsVonageFrom'],
  create({ smsVonageApiKey: key, smsVonageApiSecret: secret, smsVonageFrom: from, smsVonageUrl }) {
    const url = `${smsVonageUrl.replace(/\/$/, '')}/sms/json`;
    return {
      async send({ to, text }) {
        const message = { from, to, text, ...(!ascii.test(text) && { type: 'unicode' }) };
        const form = { ...message, api_key: key, api_secret: secret };
        const response = await postForm(url, { form });
        const [answer = {}] = toObjects(toObject(response.body).messages);
        if (response.status !== 200 || answer.status !== '0') {
          const reason = String(answer['error-text'] ?? 'not sent');
          throw new Error(`Vonage answered ${response.status}: ${reason} (${String(answer.status ?? '')})`);
        }
        const id = answer['message-id'];
        return { messageId: typeof id === 'string' ? id : '' };
      },
    };
  },
};
