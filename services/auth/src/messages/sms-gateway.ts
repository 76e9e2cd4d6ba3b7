import type { Logger } from '@tollgate/kit/logger';
import type { Settings, settingsSpec } from '../config/settings.ts';

/** Registry entry of a vendor. */
export interface SmsGatewayModule {
  readonly channels: readonly SmsChannel[];
  readonly requiredSettings: readonly (keyof typeof settingsSpec)[];
  create(settings: Settings, options: { readonly logger: Logger }): TextGateway;
}

export interface TextMessage extends CodeMessage {
  readonly text: string;
}

export interface CodeMessage {
  /** Digits without `+`. */
  readonly to: string;
  /** Ignored by gateways that generate codes. */
  readonly code: string;
  readonly channel: SmsChannel;
  /** Setting with the text; `smsTemplate` if absent. Ignored by gateways that generate codes. */
  readonly template?: 'smsTemplate' | 'mfaPhoneTemplate';
  /** Languages of the user, as BCP 47 tags, most preferred first. Default: none. */
  readonly languages?: readonly string[];
}

export type SmsChannel = 'sms' | 'whatsapp';

/** A gateway that receives the rendered text. */
interface TextGateway extends Pick<SmsGateway, 'check'> {
  send(message: TextMessage): ReturnType<SmsGateway['send']>;
}

export interface SmsGateway {
  readonly channels: readonly SmsChannel[];
  /**
   * Resolves with the gateway's message id once the message is accepted. Rejects on refusal and
   * timeout.
   */
  send(message: CodeMessage): Promise<{ readonly messageId: string }>;
  /**
   * Only on gateways that generate codes: verifies a code, which is then spent. Rejects when the
   * gateway fails to answer.
   */
  check?(submitted: { readonly to: string; readonly code: string }): Promise<boolean>;
}
