import { randomUUID } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { parseTemplate } from './templates/template.ts';
import { twilioGateway } from './twilio.ts';
import { twilioVerifyGateway } from './twilio-verify.ts';

/** How a text message travels. */
export type SmsChannel = 'sms' | 'whatsapp';

/** A code to be sent to a phone. */
export interface CodeMessage {
  /** Digits without `+`. */
  readonly to: string;
  /** Gateways with templates of their own take it alone, those with codes of their own do not send it. */
  readonly code: string;
  readonly channel: SmsChannel;
}

/** Delivers text messages. */
export interface SmsGateway {
  /** Answers the gateway's id of the message once it has been accepted. Rejects when it is refused or takes too long. */
  send(message: CodeMessage): Promise<{ readonly messageId: string }>;
  /**
   * Of a gateway that sends codes of its own making: is that the code it has sent to the phone? A code is good once. Rejects when it
   * cannot tell. Absent where the code of the message is sent.
   */
  check?(shown: { readonly to: string; readonly code: string }): Promise<boolean>;
}

/** A code with the text that carries it. */
export interface TextMessage extends CodeMessage {
  readonly text: string;
}

/** A gateway that is handed the text. */
interface TextGateway extends Pick<SmsGateway, 'check'> {
  send(message: TextMessage): ReturnType<SmsGateway['send']>;
}

/** One vendor of text messages. */
export interface SmsGatewayModule {
  /** Settings without which it cannot send. */
  readonly needs: readonly (keyof Settings)[];
  create(settings: Settings, deps: { readonly logger: Logger }): TextGateway;
}

/** Writes messages to the log, codes and all: for development, where nobody pays for them. */
const logGateway: SmsGatewayModule = {
  needs: [],
  create: (_settings, { logger }) => ({
    send: ({ to, text, channel }) => {
      const messageId = randomUUID();
      logger.info({ to, text, channel, messageId }, 'text message');
      return Promise.resolve({ messageId });
    },
  }),
};

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
