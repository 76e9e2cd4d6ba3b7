import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from './config/settings.ts';
import type { Randomness } from './keys/secrets.ts';
import type { Metrics } from './metrics.ts';
import type { Background } from './work-queue.ts';

/**
 * Every folder may use these parts. Each has a context of its own, which adds stores and adapters
 * of its own and of the folders below it; `app/context.ts` has all of them.
 */
export interface BaseContext {
  readonly settings: Settings;
  readonly random: Randomness;
  readonly background: Pick<Background, 'run'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}
