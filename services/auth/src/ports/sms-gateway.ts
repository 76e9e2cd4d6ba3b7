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
