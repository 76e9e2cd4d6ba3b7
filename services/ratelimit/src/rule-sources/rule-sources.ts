import { fileRuleSourceOptions, xdsRuleSourceOptions } from '../settings/options.ts';
import type { Settings } from '../settings/settings.ts';
import { createFileRuleSource } from './file-rule-source.ts';
import type { RuleSourceModule } from './rule-source-module.ts';
import { createXdsRuleSource } from './xds/xds-rule-source.ts';

/** All rule sources by their CONFIG_TYPE: a new one is its folder, an entry here and a value of that setting. */
export const ruleSources = {
  FILE: {
    create: (settings, { logger }) => createFileRuleSource(fileRuleSourceOptions(settings), logger),
  },
  GRPC_XDS_SOTW: {
    create: (settings, deps) => createXdsRuleSource(xdsRuleSourceOptions(settings), deps),
  },
} as const satisfies Record<Settings['configType'], RuleSourceModule>;
