import { Counter, type Registry } from 'prom-client';

/** Counters of the service that requests and jobs increment. Without a registry they are not exported. */
export class Metrics {
  /** Emails beyond the quota of all users together. */
  readonly refusedEmails: Counter;
  readonly wrongGuesses: Counter<'kind'>;
  readonly removedRows: Counter<'kind'>;

  constructor(registry?: Registry) {
    const registers = registry === undefined ? [] : [registry];
    this.refusedEmails = new Counter({
      name: 'gotrue_email_rate_limit_counter_total',
      help: 'Emails refused by the quota that all users share.',
      registers,
    });
    this.wrongGuesses = new Counter({
      name: 'auth_wrong_guesses_total',
      help: 'Wrong passwords and codes that were verified, by kind. Attempts refused with 429 are not included.',
      labelNames: ['kind'],
      registers,
    });
    // Alerts need the series from the start.
    for (const kind of ['password', 'code']) this.wrongGuesses.inc({ kind }, 0);
    this.removedRows = new Counter({
      name: 'gotrue_cleanup_affected_rows_total',
      help: 'Expired rows removed, by kind.',
      labelNames: ['kind'],
      registers,
    });
  }
}
