import t from 'tap';
import { readSettings as readAuthSettings } from '../../services/auth/src/config/settings.ts';
import { readSettings as readRatelimitSettings } from '../../services/ratelimit/src/config/settings.ts';
import { readSettings as readXdsSettings } from '../../services/xds/src/config/settings.ts';
import type { ContainerSpec } from './kubelet/pod-spec.ts';
import { chartCases } from './support/chart-cases.ts';
import { helmIsMissing } from './support/helm.ts';
import { type ManifestObject, podTemplatesOf } from './support/manifest-object.ts';
import { objectsOf, renderChart } from './support/rendered-chart.ts';

t.setTimeout(240_000);

/** How each service reads its environment. */
const readers = { auth: readAuthSettings, ratelimit: readRatelimitSettings, xds: readXdsSettings };
type Service = keyof typeof readers;
const isService = (name: string): name is Service => Object.hasOwn(readers, name);

/** What the kubelet adds, and what the Secrets hold that operators make. */
const given: Readonly<Record<Service, Readonly<Record<string, string>>>> = {
  auth: {
    DATABASE_URL: 'postgres://auth:secret@db:5432/shop',
    SVC_JWT_SECRET: 'thirty-two-characters-of-a-secret',
  },
  ratelimit: { KVSTORE_URL: 'redis:6379' },
  xds: { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
};

t.test('what a chart sets is what its service takes', { skip: helmIsMissing() }, async (t) => {
  for (const { chart, valuesFile } of await chartCases()) {
    const objects = objectsOf(await renderChart(chart, [`--values=${valuesFile}`]));
    const containers = podTemplatesOf(objects).flatMap(({ spec }) => spec.containers);
    for (const container of containers) {
      const { name } = container;
      if (!isService(name)) continue;
      const secret = secretNamed(`tg-${name}`, objects) ?? {};
      const settings = readers[name]({ ...given[name], ...secret, ...environmentOf(container) });
      t.strictSame(settings.ok ? [] : settings.problems, [], `${valuesFile}: ${name}`);
    }
  }
});

/** The variables, as the kubelet makes them; names of the Pod and keys of Secrets stand for themselves. */
function environmentOf({ env = [] }: ContainerSpec): Record<string, string> {
  return Object.fromEntries(
    env.flatMap(({ name, value }) =>
      value === undefined ? [] : [[name, value.replaceAll('$(POD_NAME)', 'tg-0')]],
    ),
  );
}

/** What is in a Secret that the chart makes. */
function secretNamed(name: string, objects: readonly ManifestObject[]): Record<string, string> | undefined {
  const found = objects.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === name);
  // Ours, and made just now.
  return found?.stringData as Record<string, string> | undefined;
}
