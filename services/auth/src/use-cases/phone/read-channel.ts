import { errors } from '../../errors.ts';
import type { SmsChannel } from '../../ports/sms-gateway.ts';
import type { Settings } from '../../settings/settings.ts';

/** Those of Twilio send by WhatsApp too, and the log takes everything. */
const whatsappGateways: readonly Settings['smsProvider'][] = ['twilio', 'twilio_verify', 'log'];

/** Reads the way a code is to travel; `sms` when nobody says. @throws AppError `validation_failed`. */
export function readChannel(text: string | undefined, settings: Pick<Settings, 'smsProvider'>): SmsChannel {
  if (text === undefined || text === '' || text === 'sms') return 'sms';
  if (text === 'whatsapp' && whatsappGateways.includes(settings.smsProvider)) return 'whatsapp';
  throw errors.validation_failed({
    message:
      "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or Twilio Verify is used as the provider.",
  });
}
