import type { Logger } from '@tollgate/kit/logger';
import { errors } from '../errors.ts';
import type { SmsGateway } from '../ports/sms-gateway.ts';
import { type Settings, settingsSpec } from '../settings/settings.ts';
import { parseTemplate } from '../templates/template.ts';
import { logGateway } from './log-gateway.ts';
import type { SmsGatewayModule, TextGateway } from './sms-gateway-module.ts';
import { twilioGateway } from './twilio-gateway.ts';
import { twilioVerifyGateway } from './twilio-verify-gateway.ts';

/** Every gateway by its name in the settings; a new one is a file and a line here. */
const smsGateways: Readonly<Record<Exclude<Settings['smsProvider'], ''>, SmsGatewayModule>> = {
  twilio: twilioGateway,
  twilio_verify: twilioVerifyGateway,
  log: logGateway,
};

/** The gateway of the settings. Without one, or without its credentials, the server works; only messages fail, and the log says why. */
export function createSmsGateway(settings: Settings, deps: { readonly logger: Logger }): SmsGateway {
  const { smsProvider } = settings;
  if (smsProvider === '') return noGateway(`${settingsSpec.smsProvider.env} is not set`);
  const gateway = smsGateways[smsProvider];
  const missing = gateway.needs.filter((key) => settings[key] === '').map((key) => settingsSpec[key].env);
  return missing.length === 0
    ? withText(gateway.create(settings, deps), settings)
    : noGateway(`${smsProvider} needs ${missing.join(', ')}`);
}

/** Writes the text of messages from the template of the settings, which has been checked with them. */
function withText(gateway: TextGateway, { smsTemplate }: Pick<Settings, 'smsTemplate'>): SmsGateway {
  const template = parseTemplate(smsTemplate, 'text');
  return {
    ...gateway,
    send: (message) => gateway.send({ ...message, text: template.render({ Code: message.code }) }),
  };
}

function noGateway(detail: string): SmsGateway {
  return {
    send: () => Promise.reject(errors.unexpected_failure({ message: 'Unable to get SMS provider', detail })),
  };
}
