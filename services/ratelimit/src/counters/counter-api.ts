import type { Lifecycle } from '@tollgate/kit/lifecycle';
import type { CounterBackend } from '../backends/counter-backend.ts';
import type { Leases } from '../backends/leases.ts';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { windowKeyPrefix } from '../ratelimit/counter-key.ts';
import type { DecisionContext } from '../ratelimit/service.ts';
import { Activity, type ActivityReport } from './activity.ts';
import type { AdminRoute } from './admin-server.ts';
import { CounterChanges } from './changes.ts';
import { Overrides } from './overrides.ts';
import { counterRoutes } from './routes.ts';

interface CounterApiParts {
  readonly decisions: DecisionContext;
  readonly leases: Leases;
  /** What all processes saw that share the port. */
  readonly getActivity: () => Promise<ActivityReport>;
}

/** The counter API: what decisions use of it, and its routes. */
export class CounterApi {
  readonly activity: Activity;
  readonly overrides: Overrides;
  readonly #backend: CounterBackend;
  readonly #context: Context;
  readonly #changes: CounterChanges;
  readonly #signingKey: string;

  constructor(settings: Settings, context: Context, backend: CounterBackend) {
    const { logger, nowMs } = context;
    const store = backend.shared;
    this.#context = context;
    this.#backend = backend;
    this.#signingKey = settings.adminToken;
    this.activity = new Activity(nowMs);
    this.overrides = new Overrides({
      store,
      nowMs,
      logger,
      onEnded: ({ domain, entries }) =>
        this.#changes.apply({ prefix: windowKeyPrefix(settings, domain, entries) }),
    });
    this.#changes = new CounterChanges({ store, overrides: this.overrides, logger });
  }

  /** Adds the exchange with other replicas to the lifecycle, and returns the routes. */
  connect(lifecycle: Lifecycle, { decisions, leases, getActivity }: CounterApiParts): readonly AdminRoute[] {
    const changes = this.#changes;
    changes.addCache(leases);
    if (decisions.localCache !== undefined) changes.addCache(decisions.localCache);
    lifecycle.add({
      name: 'changes of counters',
      start: () => changes.start(),
      stop: () => changes.stop(),
    });
    const { overrides } = this;
    const { logger, nowMs } = this.#context;
    return counterRoutes({
      decisions,
      backend: this.#backend,
      signingKey: this.#signingKey,
      changes,
      overrides,
      nowMs,
      logger,
      getActivity,
    });
  }
}
