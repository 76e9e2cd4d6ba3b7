import type { JsonObject } from '../domain/json.ts';
import type { MailKind } from '../settings/mail-text-settings.ts';

/** A mail to be sent; what it says comes from the template of its kind. */
export interface OutgoingMail {
  readonly kind: MailKind;
  readonly to: string;
  /** What `{{ .Name }}` stands for, by that name: `SiteURL`, `Email`, `Token`, `ConfirmationURL`, … */
  readonly variables: JsonObject;
}

/** Sends mail. */
export interface Mailer {
  /** Resolves when the mail has been handed over. Rejects when that fails or takes too long. */
  send(mail: OutgoingMail): Promise<void>;
  /**
   * Talks to the mail server as `send` does, and sends nothing: for somebody who does not exist. Whoever measures must not learn that,
   * and so it rejects when sending would.
   */
  sendNothing(): Promise<void>;
}

/** A mail as it leaves. */
export interface MailMessage {
  readonly kind: MailKind;
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly html: string;
  /** Further headers; a name may come several times. */
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

/** Takes mails to where they go. */
export interface MailTransport {
  /** Resolves when the mail has been handed over. Rejects when that fails or takes too long. */
  deliver(message: MailMessage): Promise<void>;
  /** Begins as `deliver` does, and ends where the mail would come. */
  deliverNothing(): Promise<void>;
}
