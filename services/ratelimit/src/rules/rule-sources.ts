import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { createFileSource } from './file-source.ts';
import type { RuleSource } from './rule-store.ts';
import { createXdsSource } from './xds/xds-source.ts';

/**
 * Rule sources by CONFIG_TYPE. A new one is a file or folder, a line here and a value of that
 * setting.
 */
export const ruleSources = {
  FILE: createFileSource,
  GRPC_XDS_SOTW: createXdsSource,
} as const satisfies Record<Settings['configType'], (settings: Settings, context: Context) => RuleSource>;
