import { Counter, type Registry } from 'prom-client';
import type { Mailer } from '../ports/mailer.ts';
import { typeOf } from './extra-headers.ts';

/** Counts the mails that are sent, by kind, and those that could not be handed over. */
export function countMails(mailer: Mailer, registry: Registry): Mailer {
  const operations = new Counter({
    name: 'global_auth_email_send_operations_total',
    help: 'Mails that were to be sent, by kind',
    labelNames: ['type'],
    registers: [registry],
  });
  const failures = new Counter({
    name: 'global_auth_email_send_errors_total',
    help: 'Mails that could not be handed to the mail server',
    registers: [registry],
  });
  return {
    ...mailer,
    async send(mail) {
      operations.inc({ type: typeOf(mail.kind) });
      try {
        await mailer.send(mail);
      } catch (error) {
        failures.inc();
        throw error;
      }
    },
  };
}
