import { randomUUID } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { lookupLanguage } from '../i18n/languages.ts';
import { parseTemplate } from '../templates/template.ts';
import { messagebirdGateway } from './gateways/messagebird.ts';
import { textlocalGateway } from './gateways/textlocal.ts';
import { twilioGateway, twilioVerifyGateway } from './gateways/twilio.ts';
import { vonageGateway } from './gateways/vonage.ts';
import { localizedTags } from './mail-sources.ts';
import type { SmsChannel, SmsGateway, SmsGatewayModule } from './sms-gateway.ts';

/** Logs messages including their codes; for development. */
const logGateway: SmsGatewayModule = {
  channels: ['sms', 'whatsapp'],
  requiredSettings: [],
  create: (_settings, { logger }) => ({
    send: ({ to, text, channel }) => {
      const messageId = randomUUID();
      logger.info({ to, text, channel, messageId }, 'text message');
      return Promise.resolve({ messageId });
    },
  }),
};

/** Gateways by SMS_PROVIDER. A new gateway is a module and an entry here. */
const smsGateways: Readonly<Record<Exclude<Settings['smsProvider'], ''>, SmsGatewayModule>> = {
  twilio: twilioGateway,
  twilio_verify: twilioVerifyGateway,
  messagebird: messagebirdGateway,
  vonage: vonageGateway,
  textlocal: textlocalGateway,
  log: logGateway,
};

/** Without a provider or its credentials the server starts, and only text messages fail. */
export function createSmsGateway(settings: Settings, options: { readonly logger: Logger }): SmsGateway {
  const { smsProvider } = settings;
  // Its codes are ours, also if the gateway would generate them.
  if (settings['hookEnabled:SEND_SMS'])
    return createFailingGateway('a hook sends the messages', ['sms', 'whatsapp']);
  if (smsProvider === '') return createFailingGateway(`${settingsSpec.smsProvider.env} is not set`, ['sms']);
  const module = smsGateways[smsProvider];
  const missing = module.requiredSettings.filter((key) => settings[key] === '');
  if (missing.length > 0) {
    const variables = missing.map((key) => settingsSpec[key].env).join(', ');
    return createFailingGateway(`${smsProvider} requires ${variables}`, module.channels);
  }
  const gateway = module.create(settings, options);
  const templates = {
    smsTemplate: readTemplates(settings, 'smsTemplate'),
    mfaPhoneTemplate: readTemplates(settings, 'mfaPhoneTemplate'),
  };
  return {
    ...gateway,
    channels: module.channels,
    send: (message) => {
      const { template = 'smsTemplate', languages = [], code } = message;
      const { byLanguage, fallback } = templates[template];
      const language = lookupLanguage(languages, [...byLanguage.keys()]) ?? '';
      const text = (byLanguage.get(language) ?? fallback).render({ Code: code });
      return gateway.send({ ...message, text });
    },
  };
}

/**
 * Templates of a setting. There are no built-in ones for languages: some countries and gateways
 * require that the text is registered.
 */
function readTemplates(settings: Settings, key: 'smsTemplate' | 'mfaPhoneTemplate') {
  const { mailerDefaultLanguage } = settings;
  const fallback = parseTemplate(settings[key], 'text');
  const given = localizedTags(settings, `${key}:`).map(
    (tag) => [tag, parseTemplate(settings[`${key}:${tag}`] ?? '', 'text')] as const,
  );
  return { fallback, byLanguage: new Map([[mailerDefaultLanguage, fallback], ...given]) };
}

function createFailingGateway(detail: string, channels: readonly SmsChannel[]): SmsGateway {
  return {
    channels,
    send: () => Promise.reject(errors.unexpected_failure({ message: 'Unable to get SMS provider', detail })),
  };
}
