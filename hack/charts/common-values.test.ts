// Values that the charts of all services have: what they change in the objects.

import { globSync } from 'node:fs';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { load } from 'js-yaml';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { services } from '../images/build-images.ts';
import { publishCommands } from '../release/publish.ts';
import { clusterArguments, helmIsMissing, releaseRegistry, renderChart, runHelm } from './support/helm.ts';
import { getPodTemplates, type ManifestObject, parseManifests } from './support/manifests.ts';

const skip = helmIsMissing();

const full = await rendered('auth', ['--values=charts/auth/ci/full-values.yaml']);

t.test('a Service of the type LoadBalancer', { skip }, (t) => {
  t.match(full('Service', 'tg-auth'), {
    metadata: { labels: { team: 'identity' } },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Cluster',
      loadBalancerClass: 'example.com/internal',
      loadBalancerSourceRanges: ['10.0.0.0/8'],
    },
  });
  t.match(full('Service', 'tg-auth-headless'), {
    metadata: { labels: { team: 'identity', 'app.kubernetes.io/component': 'headless' } },
    spec: { type: 'ClusterIP', clusterIP: 'None', externalTrafficPolicy: undefined },
  });
  t.end();
});

t.test('a PodDisruptionBudget by Pods that stay, or by Pods that go', { skip }, async (t) => {
  t.match(full('PodDisruptionBudget'), { spec: { minAvailable: '50%', maxUnavailable: undefined } });
  const budget = async (value: string) =>
    (await rendered('xds', [`--set=podDisruptionBudget.${value}`]))('PodDisruptionBudget')?.spec;
  t.match(await budget('maxUnavailable=2'), { maxUnavailable: 2, minAvailable: undefined });
  t.match(await budget('minAvailable=0'), { minAvailable: 0, maxUnavailable: undefined });
});

t.test('fields of the Deployment and its Pods', { skip }, async (t) => {
  const deployment = full('Deployment');
  t.match(deployment, {
    metadata: { labels: { team: 'identity' } },
    spec: {
      minReadySeconds: 5,
      template: {
        metadata: { labels: { team: 'identity' }, annotations: undefined },
        spec: {
          hostAliases: [{ ip: '10.0.0.9' }],
          imagePullSecrets: [{ name: 'all' }, { name: 'own' }],
          containers: [
            { lifecycle: { postStart: { sleep: { seconds: 1 } }, preStop: { sleep: { seconds: 5 } } } },
          ],
        },
      },
    },
  });
  t.match(full('ServiceAccount'), { metadata: { labels: { team: 'platform' } } });
  const own = await rendered('xds', ['--set=lifecycle.preStop.sleep.seconds=20']);
  t.match(getPodTemplates([own('Deployment') ?? missing()])[0]?.spec, {
    containers: [{ lifecycle: { preStop: { sleep: { seconds: 20 } } } }],
  });
});

t.test('fields of the ServiceMonitor', { skip }, (t) => {
  t.match(full('ServiceMonitor'), {
    spec: {
      endpoints: [
        {
          interval: '30s',
          scrapeTimeout: '10s',
          relabelings: [{ targetLabel: 'node' }],
          metricRelabelings: [{ action: 'drop' }],
        },
      ],
    },
  });
  t.end();
});

t.test(
  'alerts have labels for routes, link to a page of runbooks, and can be left out',
  { skip },
  async (t) => {
    const rule = (
      await rendered('xds', [
        '--set=prometheusRule.alertLabels.team=platform',
        '--set=prometheusRule.runbookUrl=https://runbooks.example.com/tollgate',
        '--set=prometheusRule.disabledAlerts[0]=TollgateXdsInvalidObjects',
      ])
    )('PrometheusRule');
    t.match(rule, {
      spec: {
        groups: [
          {
            rules: [
              {
                labels: {
                  team: 'platform',
                  severity: 'critical',
                  namespace: 'default',
                  service: 'tg-xds-headless',
                },
                annotations: { runbook_url: 'https://runbooks.example.com/tollgate#tollgatexdsdown' },
              },
            ],
          },
        ],
      },
    });
    t.notMatch(JSON.stringify(rule), 'TollgateXdsInvalidObjects');
    t.match(JSON.stringify(rule), 'TollgateXdsReloadFailed');
  },
);

t.test('without scraping there are no ServiceMonitor and no alerts', { skip }, async (t) => {
  for (const [chart, value] of [
    ['auth', 'settings.SVC_METRICS_ENABLED=false'],
    ['auth', 'settings.SVC_METRICS_EXPORTER=opentelemetry'],
    ['ratelimit', 'settings.USE_PULLMETRICS=false'],
  ] as const) {
    const values = `--values=charts/${chart}/ci/default-values.yaml`;
    const found = await rendered(chart, [values, `--set=${value}`]);
    t.notOk(found('ServiceMonitor'), value);
    t.notOk(found('PrometheusRule'), value);
  }
  // Scraped in another way, with labels that are not known here.
  const other = await rendered('xds', ['--set=serviceMonitor.enabled=false']);
  t.notOk(other('ServiceMonitor'));
  const rules = JSON.stringify(other('PrometheusRule'));
  t.match(rules, 'TollgateXdsNotSynced');
  t.notMatch(rules, /Tollgate\w+Down/);
});

t.test(
  'an Ingress and an HTTPRoute lead to the API, at the host of its external URL',
  { skip },
  async (t) => {
    t.match(full('Ingress'), {
      spec: {
        ingressClassName: 'nginx',
        tls: [{ secretName: 'auth-tls' }],
        rules: [
          {
            host: 'auth.example.com',
            http: {
              paths: [
                {
                  path: '/',
                  pathType: 'Prefix',
                  backend: { service: { name: 'tg-auth', port: { name: 'http' } } },
                },
              ],
            },
          },
        ],
      },
    });
    t.match(full('HTTPRoute'), {
      spec: {
        parentRefs: [{ name: 'gateway', namespace: 'envoy' }],
        hostnames: ['auth.example.com'],
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: '/auth/v1' } }],
            filters: [
              {
                type: 'URLRewrite',
                urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
              },
            ],
            timeouts: { request: '10s' },
            backendRefs: [{ name: 'tg-auth', port: 9002 }],
          },
        ],
      },
    });
    const values = ['--values=charts/auth/ci/default-values.yaml', '--set=httpRoute.enabled=true'];
    const plain = await rendered('auth', [
      ...values,
      '--set=httpRoute.parentRefs[0].name=gateway,httpRoute.hostnames[0]=id.example.com',
    ]);
    t.match(plain('HTTPRoute'), { spec: { hostnames: ['id.example.com'], rules: [{ filters: undefined }] } });
    t.notOk(plain('Ingress'));
    const below = await rendered('auth', [
      ...values,
      '--set=httpRoute.parentRefs[0].name=gateway',
      '--set=settings.SVC_API_EXTERNAL_URL=https://example.com:8443/auth/v1/',
    ]);
    t.match(below('HTTPRoute'), {
      spec: {
        hostnames: ['example.com'],
        rules: [{ matches: [{ path: { value: '/auth/v1' } }], filters: [{ type: 'URLRewrite' }] }],
      },
    });
  },
);

t.test('extra objects with templates', { skip }, async (t) => {
  t.match(full('ConfigMap', 'tg-more'), { data: { namespace: 'default' } });
  const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "{{ .Release.Name }}-text" }';
  for (const chart of ['ratelimit', 'xds']) {
    const found = await rendered(chart, [`--set-json=extraObjects=${JSON.stringify([text])}`]);
    t.ok(found('ConfigMap', 'tg-text'), chart);
  }
});

t.test(
  'Pod templates do not contain the version of the chart, so an upgrade restarts no Pods',
  { skip },
  async (t) => {
    const pinned = ['auth', 'ratelimit', 'xds'].map((chart) => `--set=${chart}.image.tag=pinned`);
    const args = ['--values=charts/tollgate/ci/small-values.yaml', ...pinned];
    const getPods = async (folder: string) => {
      const { code, stdout, stderr } = await runHelm([
        'template',
        'tg',
        folder,
        ...clusterArguments,
        ...args,
      ]);
      t.equal(code, 0, stderr);
      const deployments = parseManifests(stdout).filter(({ kind }) => kind === 'Deployment');
      t.equal(deployments.length, 3);
      return deployments.map(({ spec }) => (spec as { readonly template: unknown }).template);
    };
    const next = makeTextFolder(t).path;
    await cp('charts', next, { recursive: true, dereference: true });
    for (const path of globSync(`${next}/**/Chart.yaml`)) {
      const text = await readFile(path, 'utf8');
      await writeFile(path, text.replaceAll(packageJson.version, '99.0.0'));
    }
    const now = await getPods('charts/tollgate');
    t.strictSame(await getPods('charts/tollgate'), now, 'the same, again and again');
    t.strictSame(await getPods(`${next}/tollgate`), now, 'the same in the next version');
  },
);

t.test('the chart accepts the values for Argo CD and Flux in the README', { skip }, async (t) => {
  const page = await readFile('charts/README.md', 'utf8');
  const documents = [...page.matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, text = '']) =>
    parseManifests(text),
  );
  // Our own page; what is missing renders no chart.
  const application = documents.find(({ kind }) => kind === 'Application')?.spec as {
    readonly source: { readonly helm: { readonly valuesObject: object } };
  };
  const release = documents.find(({ kind }) => kind === 'HelmRelease')?.spec as { readonly values: object };
  const folder = makeTextFolder(t);
  for (const values of [application.source.helm.valuesObject, release.values]) {
    folder.write('values.yaml', JSON.stringify(values));
    t.match(await renderChart('tollgate', [`--values=${folder.path}/values.yaml`]), 'name: auth-secrets');
  }
});

t.test('the charts use the images that the release workflow publishes', { skip }, async (t) => {
  // Our own file; a job without a registry fails below.
  const workflow = load(await readFile('.github/workflows/release.yaml', 'utf8')) as {
    readonly jobs: { readonly release: { readonly env: { readonly IMAGE_REGISTRY: string } } };
  };
  const owner = releaseRegistry.replace('ghcr.io/', '');
  const registry = workflow.jobs.release.env.IMAGE_REGISTRY.replace(
    /\$\{\{ github\.repository_owner \}\}/,
    owner,
  );
  const { version } = packageJson;
  const commands = publishCommands({
    version,
    revision: 'r',
    registry,
    folder: 'dist',
    files: [],
    bases: {},
  });
  const published = commands
    .flatMap((command) => command.filter((argument) => argument.startsWith('--tag=')))
    .map((argument) => argument.replace('--tag=', ''));
  t.equal(published.length, services.length);
  const objects = parseManifests(
    await renderChart('tollgate', ['--values=charts/tollgate/ci/ha-values.yaml']),
  );
  const used = getPodTemplates(objects).flatMap(({ spec }) =>
    [...(spec.initContainers ?? []), ...spec.containers].map(({ image }) => image),
  );
  t.strictSame(new Set(used), new Set(published));
});

/**
 * Renders a chart; the returned function finds an object by kind, and by name where there are
 * several.
 */
async function rendered(chart: string, args: readonly string[]) {
  const objects = skip === false ? parseManifests(await renderChart(chart, args)) : [];
  return (kind: string, name?: string): ManifestObject | undefined =>
    objects.find((object) => object.kind === kind && (name === undefined || object.metadata.name === name));
}

function missing(): never {
  throw new Error('the chart renders no such object');
}
