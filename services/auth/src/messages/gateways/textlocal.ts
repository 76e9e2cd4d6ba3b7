import { postForm, toObject, toObjects } from '../../outbound/post-form.ts';
import type { SmsGatewayModule } from '../sms-gateway.ts';

/** The text is none of the templates that are registered for the sender. */
const templateNotMatched = 80;

/**
 * SMS by Textlocal. Rejected messages have status 200 as well.
 *
 * @see https://api.textlocal.in/docs/sendsms
 */
export const textlocalGateway: SmsGatewayModule = {
  channels: ['sms'],
  requiredSettings: ['smsTextlocalApiKey', 'smsTextlocalSender'],
  create({ smsTextlocalApiKey: apikey, smsTextlocalSender: sender, smsTextlocalUrl }) {
    const url = `${smsTextlocalUrl.replace(/\/$/, '')}/send`;
    return {
      async send({ to, text }) {
        const form = { sender, apikey, message: text, numbers: to };
        const { status, body } = await postForm(url, { form });
        const answer = toObject(body);
        if (status !== 200 || answer.status !== 'success')
          throw new Error(`Textlocal answered ${status}: ${describe(answer.errors)}`);
        const [{ id } = {}] = toObjects(answer.messages);
        return { messageId: typeof id === 'string' || typeof id === 'number' ? String(id) : '' };
      },
    };
  },
};

function describe(errors: unknown): string {
  const [{ code, message } = {}] = toObjects(errors);
  const hint = code === templateNotMatched ? ', SMS_TEMPLATE is not a registered template' : '';
  return `${String(message ?? 'not sent')} (${String(code ?? '')})${hint}`;
}
