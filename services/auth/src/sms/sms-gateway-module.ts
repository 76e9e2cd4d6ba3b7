import type { Logger } from '@tollgate/kit/logger';
import type { CodeMessage, SmsGateway } from '../ports/sms-gateway.ts';
import type { Settings } from '../settings/settings.ts';

/** A code with the text that carries it. */
export interface TextMessage extends CodeMessage {
  readonly text: string;
}

/** A gateway that is handed the text. */
export interface TextGateway extends Pick<SmsGateway, 'check'> {
  send(message: TextMessage): ReturnType<SmsGateway['send']>;
}

/** One vendor of text messages. */
export interface SmsGatewayModule {
  /** Settings without which it cannot send. */
  readonly needs: readonly (keyof Settings)[];
  create(settings: Settings, deps: { readonly logger: Logger }): TextGateway;
}
