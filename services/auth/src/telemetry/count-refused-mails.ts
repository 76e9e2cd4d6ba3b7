import { Counter, type Registry } from 'prom-client';
import type { QuotaCounter } from '../ports/quota-counter.ts';

/** Counts mails that were not sent because all users together had had as many as they may. Without a registry, nothing. */
export function countRefusedMails(quotas: QuotaCounter, registry: Registry | undefined): QuotaCounter {
  if (registry === undefined) return quotas;
  const refused = new Counter({
    name: 'gotrue_email_rate_limit_counter_total',
    help: 'Mails beyond the quota of all users together.',
    registers: [registry],
  });
  return {
    ...quotas,
    async take(of, nowMs) {
      const answer = await quotas.take(of, nowMs);
      if (!answer.allowed && of.limiter === 'email_sent') refused.inc();
      return answer;
    },
  };
}
