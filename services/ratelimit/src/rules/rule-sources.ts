import type { Logger } from '@tollgate/kit/logger';
import { fileRuleSourceOptions, xdsRuleSourceOptions } from '../config/options.ts';
import type { Settings } from '../config/settings.ts';
import type { StatsRegistry } from '../stats/registry.ts';
import { createFileRuleSource } from './file-source.ts';
import type { RuleSource } from './rule-store.ts';
import { createXdsRuleSource } from './xds/xds-source.ts';

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

/** All rule sources by their CONFIG_TYPE: a new one is its folder, an entry here and a value of that setting. */
export const ruleSources = {
  FILE: {
    create: (settings, { logger }) => createFileRuleSource(fileRuleSourceOptions(settings), logger),
  },
  GRPC_XDS_SOTW: {
    create: (settings, deps) => createXdsRuleSource(xdsRuleSourceOptions(settings), deps),
  },
} as const satisfies Record<Settings['configType'], RuleSourceModule>;
