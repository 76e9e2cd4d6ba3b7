import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import type { StatsRegistry } from './metrics/registry.ts';

export interface Context {
  readonly logger: Logger;
  readonly health: Health;
  readonly stats: StatsRegistry;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /** A number in [0, 1). */
  readonly random: () => number;
}
