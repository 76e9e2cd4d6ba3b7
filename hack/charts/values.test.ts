import { readdir, readFile } from 'node:fs/promises';
import t from 'tap';
import { readSettings as readAuthSettings } from '../../services/auth/src/config/settings.ts';
import { readSettings as readConsoleSettings } from '../../services/console/src/config/settings.ts';
import { readSettings as readRatelimitSettings } from '../../services/ratelimit/src/config/settings.ts';
import { readSettings as readXdsSettings } from '../../services/xds/src/config/settings.ts';
import { type ChartValue, readChartValues } from '../generate/charts/chart-values.ts';
import { chartNames, describeValue } from '../generate/charts/charts.ts';
import { serviceCharts } from '../generate/charts/service-charts.ts';
import type { ContainerSpec } from './kubelet/pod-spec.ts';
import { chartCases, helmIsMissing, renderChart } from './support/helm.ts';
import { getPodTemplates, type ManifestObject, parseManifests } from './support/manifests.ts';

const getValues = async (chart: string) =>
  readChartValues(await readFile(`charts/${chart}/values.yaml`, 'utf8'));

t.test('every setting of a service has a value of its own', async (t) => {
  for (const { name, settings, decidedBy, sometimesSecret, settingDefaults } of serviceCharts) {
    const values = await getValues(name);
    const paths = new Set(getLeaves(values).map((path) => path.map(({ key }) => key).join('.')));
    for (const { env, secret } of Object.values(settings)) {
      const decider = decidedBy[env];
      const path = decider ?? `${secret ? 'secretSettings' : 'settings'}.${env}`;
      t.ok(decider === 'Kubernetes' || paths.has(path), `${name}: ${env} is ${path}`);
    }
    const variables = new Set(Object.values(settings).map(({ env }) => env));
    for (const variable of [...sometimesSecret, ...Object.keys({ ...decidedBy, ...settingDefaults })]) {
      t.ok(variables.has(variable), `${name}: ${variable} is a setting`);
    }
  }
});

t.test('the service accepts the defaults of the chart', async (t) => {
  for (const { name, settings, settingDefaults } of serviceCharts) {
    for (const { env, parse } of Object.values(settings)) {
      const value = settingDefaults[env];
      if (value !== undefined) t.not(parse(String(value)), undefined, `${name}: ${env}=${value}`);
    }
  }
});

t.test('every value is explained in values.yaml and in the README', async (t) => {
  for (const chart of chartNames) {
    const readme = await readFile(`charts/${chart}/README.md`, 'utf8');
    for (const path of getLeaves(await getValues(chart))) {
      const name = path.map(({ key }) => key).join('.');
      t.not(describeValue(path), '', `${chart}: ${name} has a comment`);
      t.ok(readme.includes(`| \`${name}\` `), `${chart}: ${name} is in the README`);
    }
  }
});

t.test('every value is read by a template', async (t) => {
  const readFolder = async (folder: string) => {
    const files = (await readdir(folder)).filter((file) => /\.(?:tpl|ya?ml)$/.test(file));
    return (await Promise.all(files.map((file) => readFile(`${folder}/${file}`, 'utf8')))).join('\n');
  };
  const common = await readFolder('charts/common/templates');
  for (const { name } of serviceCharts) {
    const templates = `${common}${await readFolder(`charts/${name}/templates`)}`;
    for (const { key } of await getValues(name))
      t.ok(new RegExp(`[."]${key}\\b`).test(templates), `${name}: ${key}`);
  }
});

t.test('comments are read with the value below them, annotations apart', (t) => {
  const [a, free, list] = readChartValues(`# No comment of a value.

# What a is,
# and more.
a:
  # What b is.
  # @schema {"minimum": 1}
  b: 2
free: {}
list:
  - c: 3
`);
  t.match(a, { key: 'a', doc: 'What a is, and more.', schema: {} });
  t.match(a?.children, [{ key: 'b', doc: 'What b is.', schema: { minimum: 1 }, value: 2, children: [] }]);
  t.match(free, { key: 'free', doc: '', value: {}, children: [] });
  t.match(list, { key: 'list', value: [{ c: 3 }], children: [] });
  t.end();
});

function getLeaves(values: readonly ChartValue[], parents: readonly ChartValue[] = []): ChartValue[][] {
  return values.flatMap((value) => {
    const path = [...parents, value];
    return value.children.length === 0 ? [path] : getLeaves(value.children, path);
  });
}

const readers = {
  auth: readAuthSettings,
  console: readConsoleSettings,
  ratelimit: readRatelimitSettings,
  xds: readXdsSettings,
};
type Service = keyof typeof readers;
const isService = (name: string): name is Service => Object.hasOwn(readers, name);

/** Variables that the kubelet adds, and data of Secrets that operators create. */
const given: Readonly<Record<Service, Readonly<Record<string, string>>>> = {
  auth: {
    DATABASE_URL: 'postgres://auth:secret@db:5432/shop',
    SVC_JWT_SECRET: 'thirty-two-characters-of-a-secret',
  },
  console: {},
  ratelimit: { KVSTORE_URL: 'redis:6379' },
  xds: { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
};

t.test('services accept the settings of their charts', { skip: helmIsMissing() }, async (t) => {
  for (const { chart, valuesFile } of await chartCases()) {
    const objects = parseManifests(await renderChart(chart, [`--values=${valuesFile}`]));
    const containers = getPodTemplates(objects).flatMap(({ spec }) => spec.containers);
    for (const container of containers) {
      const { name } = container;
      if (!isService(name)) continue;
      const made = settingsNamed(`tg-${name}`, objects);
      const settings = readers[name]({ ...given[name], ...made, ...toEnvironment(container) });
      t.strictSame(settings.ok ? [] : settings.problems, [], `${valuesFile}: ${name}`);
    }
  }
});

/**
 * The variables, as the kubelet makes them; names of the Pod and keys of Secrets stand for
 * themselves.
 */
function toEnvironment({ env = [] }: ContainerSpec): Record<string, string> {
  return Object.fromEntries(
    env.flatMap(({ name, value }) =>
      value === undefined ? [] : [[name, value.replaceAll('$(POD_NAME)', 'tg-0')]],
    ),
  );
}

/** Content of the ConfigMap and the Secret of a service that the chart makes. */
function settingsNamed(service: string, objects: readonly ManifestObject[]): Record<string, string> {
  const found = objects.filter(
    ({ kind, metadata }) => /^(?:ConfigMap|Secret)$/.test(kind) && metadata.name === service,
  );
  // Ours, and made just now.
  return Object.assign({}, ...found.map(({ data, stringData }) => data ?? stringData));
}
