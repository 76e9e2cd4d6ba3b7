import { isDeepStrictEqual } from 'node:util';
import type { Html } from '@tollgate/kit/html';
import type { ServiceSettings } from '@tollgate/kit/start-report';
import { toAnswers } from '../../http/problems.ts';
import type { Visit } from '../../http/visit.ts';
import type { ReplicaResult } from '../../services/session-clients.ts';

export type Setting = ServiceSettings['settings'][number];
type Warning = ServiceSettings['warnings'][number];

/** A setting of a service, as its replicas have it. */
export interface ServiceSetting {
  readonly service: string;
  readonly setting: Setting;
  /** Values of all replicas, if they differ. */
  readonly differences: readonly { readonly replica: string; readonly setting: Setting }[];
}

/** A warning of a service, with the replicas that have it. */
export interface ServiceWarning {
  readonly service: string;
  readonly warning: Warning;
  readonly replicas: readonly string[];
}

/** The reports of all replicas that answer, and what is wrong with the others. */
export async function readReports(visit: Visit): Promise<{
  readonly reports: readonly ServiceSettings[];
  readonly problems: readonly Html[];
  /** All results, by service. */
  readonly results: ReadonlyMap<string, readonly ReplicaResult<ServiceSettings>[]>;
}> {
  const { services, context } = visit;
  const { limiterUrls, xdsUrl } = context.settings;
  const [auth, ratelimit, xds] = await Promise.all([
    services.authServers((client) => client.GET('/admin/settings')),
    limiterUrls.length === 0 ? [] : services.limiters((client) => client.GET('/v1/settings')),
    xdsUrl === '' ? [] : services.xdsServers((client) => client.GET('/v1/settings')),
  ]);
  const byService = new Map<string, readonly ReplicaResult<ServiceSettings>[]>(
    Object.entries({ auth, ratelimit, xds }),
  );
  const { values, problems } = toAnswers([...byService.values()].flat(), visit);
  return { reports: [...values, context.report.get()], problems, results: byService };
}

/** The settings of each service once, in the order of its documentation. */
export function mergeSettings(reports: readonly ServiceSettings[]): readonly ServiceSetting[] {
  return [...Map.groupBy(reports, ({ service }) => service)].flatMap(([service, replicas]) => {
    const named = replicas.flatMap(({ replica, settings }) =>
      settings.map((setting) => ({ replica, setting })),
    );
    // A version may have settings that another one lacks.
    return [...Map.groupBy(named, ({ setting }) => setting.name).values()].flatMap((all) => {
      const [first] = all;
      if (first === undefined) return [];
      const isEqual = all.every(({ setting }) => isSame(setting, first.setting));
      return [{ service, setting: first.setting, differences: isEqual ? [] : all }];
    });
  });
}

/** Whether two replicas have the same value. The source may be another one. */
function isSame(one: Setting, other: Setting): boolean {
  return one.value === other.value && one.set === other.set && one.changed === other.changed;
}

export function mergeWarnings(reports: readonly ServiceSettings[]): readonly ServiceWarning[] {
  const merged: { service: string; warning: Warning; replicas: string[] }[] = [];
  for (const { service, replica, warnings } of reports)
    for (const warning of warnings) {
      const known = merged.find((one) => one.service === service && isDeepStrictEqual(one.warning, warning));
      if (known === undefined) merged.push({ service, warning, replicas: [replica] });
      else if (!known.replicas.includes(replica)) known.replicas.push(replica);
    }
  return merged;
}
