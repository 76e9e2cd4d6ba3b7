import type { Logger } from '@tollgate/kit/logger';
import type { RuleSource } from '../ports/rule-source.ts';
import type { Settings } from '../settings/settings.ts';
import type { StatsRegistry } from '../stats/stats-registry.ts';

/** What a rule source may use. */
interface RuleSourceDeps {
  readonly random: () => number;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
}

/** A kind of rule source. */
export interface RuleSourceModule {
  /** Makes the source from the service's settings. */
  create(settings: Settings, deps: RuleSourceDeps): RuleSource;
}
