import type { Mailbox, MailboxEntry } from '../ports/mailbox.ts';
import type { MailTransport } from '../ports/mailer.ts';

/** Older mails are forgotten: a development server may run for weeks. */
const maxEntries = 200;

/** Creates the mailbox of development mode: mails that are delivered to it stay there. */
export function createMailbox({ nowMs }: { readonly nowMs: () => number }): Mailbox & MailTransport {
  let entries: readonly MailboxEntry[] = [];
  let lastId = 0;
  return {
    list: () => entries,
    clear() {
      entries = [];
    },
    async deliver(message) {
      lastId++;
      entries = [{ ...message, id: lastId, at: new Date(nowMs()) }, ...entries].slice(0, maxEntries);
      await Promise.resolve();
    },
    deliverNothing: () => Promise.resolve(),
  };
}
