import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import type { RuleSource } from './rule-store.ts';

type CreateSource = (settings: Settings, context: Context) => RuleSource;

/**
 * Rule sources by CONFIG_TYPE. A new one is a file or folder, a line here and a value of that
 * setting. Only the chosen one is loaded.
 */
export const ruleSources = {
  FILE: async () => (await import('./file-source.ts')).createFileSource,
  GRPC_XDS_SOTW: async () => (await import('./xds/xds-source.ts')).createXdsSource,
} as const satisfies Record<Settings['configType'], () => Promise<CreateSource>>;
