import { Counter, Gauge, type Registry } from 'prom-client';
import type { IdentityStatesStats } from '../identity-states/identity-states.ts';

/** What is measured. */
export interface MeasuredIdentityStates {
  readonly states: { stats(): IdentityStatesStats };
  readonly listener: { isUp(): boolean };
}

/** Shows how often external authorization knew a user, and whether it hears of changes. Read when asked for: a check counts in plain numbers. */
export function measureIdentityStates(
  { states, listener }: MeasuredIdentityStates,
  registry: Registry,
): void {
  const registers = [registry];
  new Counter({
    name: 'auth_ext_authz_identity_finds_total',
    help: 'Users whose state was asked for, by how it was found: known, read, or joined a read under way',
    labelNames: ['result'],
    registers,
    collect() {
      const { hits, misses, joins } = states.stats();
      this.reset();
      this.inc({ result: 'known' }, hits);
      this.inc({ result: 'read' }, misses);
      this.inc({ result: 'joined' }, joins);
    },
  });
  new Counter({
    name: 'auth_ext_authz_identity_invalidations_total',
    help: 'Changes that were heard of: of single users, or of all at once',
    labelNames: ['scope'],
    registers,
    collect() {
      const { invalidations, invalidationsOfAll } = states.stats();
      this.reset();
      this.inc({ scope: 'user' }, invalidations);
      this.inc({ scope: 'all' }, invalidationsOfAll);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_entries',
    help: 'States held',
    registers,
    collect() {
      this.set(states.stats().entries);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_listener_up',
    help: 'Whether changes of users are heard of (1), or only found by asking again in time (0)',
    registers,
    collect() {
      this.set(listener.isUp() ? 1 : 0);
    },
  });
}
