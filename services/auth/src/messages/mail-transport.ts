import type { MailKind } from '../i18n/texts/mail-kinds.ts';

/** A rendered mail. */
export interface MailMessage {
  readonly kind: MailKind;
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly html: string;
  /** The mail as plain text. */
  readonly text: string;
  /** Additional headers; a key may occur several times. */
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

export interface MailTransport {
  /** Resolves when the mail server has accepted the mail. Rejects on failure and timeout. */
  deliver(message: MailMessage): Promise<void>;
  /** Connects as `deliver` does, without sending a mail. */
  deliverNothing(): Promise<void>;
}
