import { postForm, toObject, toObjects } from '../../outbound/post-form.ts';
import type { SmsGatewayModule } from '../sms-gateway.ts';

/**
 * SMS by MessageBird (Bird).
 *
 * @see https://developers.messagebird.com/api/sms-messaging/#send-outbound-sms
 */
export const messagebirdGateway: SmsGatewayModule = {
  channels: ['sms'],
  requiredSettings: ['smsMessagebirdAccessKey', 'smsMessagebirdOriginator'],
  create({ smsMessagebirdAccessKey: key, smsMessagebirdOriginator: originator, smsMessagebirdUrl }) {
    const url = `${smsMessagebirdUrl.replace(/\/$/, '')}/messages`;
    const headers = { authorization: `AccessKey ${key}` };
    return {
      async send({ to, text }) {
        const form = { originator, body: text, recipients: to, type: 'sms', datacoding: 'unicode' };
        const { status, body } = await postForm(url, { form, headers });
        const { id, recipients, errors } = toObject(body);
        const { totalSentCount } = toObject(recipients);
        const isSent = typeof totalSentCount === 'number' && totalSentCount > 0;
        if (status < 200 || status > 299 || !isSent) {
          const [{ description, code } = {}] = toObjects(errors);
          throw new Error(
            `MessageBird answered ${status}: ${String(description ?? 'not sent')} (${String(code ?? '')})`,
          );
        }
        return { messageId: typeof id === 'string' ? id : '' };
      },
    };
  },
};
