import type { Lifecycle } from '@tollgate/kit/lifecycle';
import type { StartReport } from '@tollgate/kit/start-report';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { Activity } from '../decision/activity.ts';
import { windowKeyPrefix } from '../decision/counter-key.ts';
import type { DecisionContext } from '../decision/decide.ts';
import { Overrides } from '../decision/overrides.ts';
import type { CounterStore } from '../stores/counter-store.ts';
import type { Leases } from '../stores/leases.ts';
import { CounterChanges } from './changes.ts';
import { counterHandlers } from './handlers.ts';
import type { Handlers } from './operations.ts';

interface CounterApiParts {
  readonly decisions: DecisionContext;
  readonly leases: Leases;
  readonly report: StartReport;
}

/** The counter API: what decisions use of it, and its routes. */
export class CounterApi {
  readonly activity: Activity;
  readonly overrides: Overrides;
  readonly #store: CounterStore;
  readonly #context: Context;
  readonly #changes: CounterChanges;
  readonly #signingKey: string;

  constructor(settings: Settings, context: Context, store: CounterStore) {
    const { logger, nowMs } = context;
    const { shared } = store;
    this.#context = context;
    this.#store = store;
    this.#signingKey = settings.adminToken;
    this.activity = new Activity(nowMs);
    this.overrides = new Overrides({
      store: shared,
      nowMs,
      logger,
      onEnded: ({ domain, entries }) =>
        this.#changes.apply({ prefix: windowKeyPrefix(settings, domain, entries) }),
    });
    this.#changes = new CounterChanges({ store: shared, overrides: this.overrides, logger });
  }

  /** Adds the exchange with other replicas to the lifecycle, and returns the handlers. */
  connect(lifecycle: Lifecycle, { decisions, leases, report }: CounterApiParts): Handlers {
    const changes = this.#changes;
    changes.addCache(leases);
    if (decisions.localCache !== undefined) changes.addCache(decisions.localCache);
    lifecycle.add({
      name: 'changes of counters',
      start: () => changes.start(),
      stop: () => changes.stop(),
    });
    const { overrides } = this;
    const { logger, nowMs, stats } = this.#context;
    return counterHandlers({
      decisions,
      store: this.#store,
      signingKey: this.#signingKey,
      changes,
      overrides,
      nowMs,
      logger,
      activity: this.activity,
      stats,
      report,
    });
  }
}
