import { Counter, type Registry } from 'prom-client';

/** `unavailable`: not fetched. `invalid`: not parsed. `render`: does not fit the values of a mail. */
export type TemplateFailure = 'unavailable' | 'invalid' | 'render';

/** Counts a failure of a mail template. */
export type CountTemplateFailure = (reason: TemplateFailure) => void;

const reasons: readonly TemplateFailure[] = ['unavailable', 'invalid', 'render'];

/** Counts the failures of mail templates, in each of which another text than the configured one was used. */
export function countTemplateFailures(registry: Registry | undefined): CountTemplateFailure {
  if (registry === undefined) return () => undefined;
  const failures = new Counter({
    name: 'auth_mail_template_failures_total',
    help: 'Mail templates that could not be fetched, parsed or rendered, by reason',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of reasons) failures.inc({ reason }, 0);
  return (reason) => failures.inc({ reason });
}
