/** How a text message travels. */
export type SmsChannel = 'sms' | 'whatsapp';

/** A text message to be sent. */
export interface TextMessage {
  /** Digits without `+`. */
  readonly to: string;
  readonly text: string;
  /** The code in the text: gateways with templates of their own take it alone. */
  readonly code: string;
  readonly channel: SmsChannel;
}

/** Delivers text messages. */
export interface SmsGateway {
  /** Answers the gateway's id of the message once it has been accepted. Rejects when it is refused or takes too long. */
  send(message: TextMessage): Promise<{ readonly messageId: string }>;
}
