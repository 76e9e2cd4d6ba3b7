import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import type { CounterBackend } from '../ports/counter-backend.ts';
import type { Settings } from '../settings/settings.ts';
import type { StatsRegistry } from '../stats/stats-registry.ts';

/** What a backend may use. */
export interface BackendDeps {
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
}

/** A kind of counter backend. */
export interface BackendModule {
  /** Makes the backend from the service's settings; may read files. */
  create(settings: Settings, deps: BackendDeps): Promise<CounterBackend>;
}
