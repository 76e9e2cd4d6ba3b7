import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { serviceCharts } from '../generate/charts/service-charts.ts';
import type { ContainerSpec } from './kubelet/pod-spec.ts';
import {
  chartCases,
  clusterArguments,
  helmIsMissing,
  releaseRegistry,
  renderChart,
  runHelm,
} from './support/helm.ts';
import { getPodTemplates, type ManifestObject, parseManifests } from './support/manifests.ts';

const skip = helmIsMissing();

t.test('helm lint --strict finds no problems', { skip }, async (t) => {
  for (const { chart, valuesFile } of await chartCases()) {
    const { code, stdout } = await runHelm([
      'lint',
      '--strict',
      `charts/${chart}`,
      `--values=${valuesFile}`,
      ...clusterArguments.filter((argument) => argument.startsWith('--kube-version')),
    ]);
    t.equal(code, 0, `${valuesFile}: ${stdout}`);
  }
});

t.test('an unknown name is an error', { skip }, async (t) => {
  for (const [chart, wrong] of [
    ['xds', 'replcas=2'],
    ['xds', 'settings.LOG_LEVLE=info'],
    ['ratelimit', 'ports.grcp=8081'],
    ['ratelimit', 'image.digset=sha256:0'],
    ['auth', 'secretSettings.DATABASE_URI.name=x'],
    ['auth', 'secretSettings.DATABASE_URL.secret=x'],
    ['crds', 'kept=true'],
    ['tollgate', 'ratelimits.enabled=false'],
    ['tollgate', 'dev.enable=true'],
    ['tollgate', 'xds.settings.XDS_ALLOW_EMTPY=true'],
    ['tollgate', 'global.imageRegsitry=registry.example.com'],
    ['xds', 'global.imageRegsitry=registry.example.com'],
    ['crds', 'global.imageRegsitry=registry.example.com'],
  ] as const) {
    const { code, stderr } = await template(chart, [`--set=${wrong}`]);
    t.not(code, 0, `${chart}: ${wrong}`);
    t.match(stderr, /additional propert/i, `${chart}: ${wrong}`);
  }
});

t.test('a value of another type is an error', { skip }, async (t) => {
  for (const [chart, wrong] of [
    ['xds', 'replicas=many'],
    ['xds', 'settings.LOG_LEVEL=loud'],
    ['xds', 'settings.XDS_ALLOW_EMPTY=perhaps'],
    ['ratelimit', 'settings.NEAR_LIMIT_RATIO=half'],
    ['ratelimit', 'rules.source=redis'],
    ['auth', 'settings.SVC_PASSWORD_MIN_LENGTH=73'],
    ['auth', 'settings.SVC_EXT_AUTHZ_MAX_STALENESS=10'],
    ['auth', 'settings.SVC_EXT_AUTHZ_MAX_STALENESS=10 s'],
    ['auth', 'settings.SVC_JWT_EXP=1d'],
    ['auth', 'settings.SVC_SAML_ENABLED=true'],
    ['xds', 'settings.XDS_DEBOUNCE=fast'],
    ['xds', 'serviceMonitor.interval=half a minute'],
    ['xds', 'certManager.duration=90d'],
    ['tollgate', 'dev.storage=lots'],
    ['tollgate', 'auth.serviceMonitor.enabled=sometimes'],
  ] as const) {
    const { code } = await template(chart, [`--set=${wrong}`]);
    t.not(code, 0, `${chart}: ${wrong}`);
  }
});

t.test('the schema accepts the durations that the services accept', { skip }, async (t) => {
  const durations = ['settings.SVC_EXT_AUTHZ_MAX_STALENESS=0', 'settings.SVC_JWT_EXP=3600'];
  const more = [
    'settings.SVC_JWT_EXP=1h30m',
    'settings.SVC_DRAIN_TIMEOUT=1.5s',
    'serviceMonitor.interval=1m30s',
  ];
  for (const value of [...durations, ...more])
    t.equal((await template('auth', [`--set=${value}`])).code, 0, value);
});

t.test('missing required values are named in the error', { skip }, async (t) => {
  const missing = async (chart: string, ...args: string[]) =>
    (await runHelm(['template', 'tg', `charts/${chart}`, ...clusterArguments, ...args])).stderr;
  const beginning = 'these values are missing or wrong:\n ';
  t.match(await missing('auth'), `${beginning} settings.SVC_API_EXTERNAL_URL, such as https`);
  t.match(await missing('tollgate'), `${beginning} auth.settings.SVC_API_EXTERNAL_URL, such as https`);
  t.match(await missing('tollgate', '--set=dev.enabled=true'), /dev\.secret, of 32 characters or more/);
  const development = ['--set=dev.enabled=true', `--set=dev.secret=${'0'.repeat(32)}`];
  t.match(
    await missing('tollgate', ...development, '--set=xds.ports.grpc=19000'),
    /ratelimit\.rules\.xds\.address=tg-xds-headless:19000, because/,
  );
  t.match(
    await missing('tollgate', ...development, '--set=ratelimit.settings.KVSTORE_TYPE=sentinel'),
    /ratelimit\.settings\.KVSTORE_URL, because of ratelimit\.settings\.KVSTORE_TYPE=sentinel/,
  );
  const sentinel = ['--set=settings.KVSTORE_TYPE=sentinel', '--set=settings.KVSTORE_URL=sentinel-0:26379'];
  t.match(await missing('ratelimit', ...sentinel), /settings\.KVSTORE_URL begins with the name/);
  const memcached = '--set=settings.BACKEND_TYPE=memcache';
  t.match(await missing('ratelimit', memcached), /settings\.MCACHE_HOST_PORT, such as/);
  const both = [
    '--set=settings.MCACHE_HOST_PORT=memcached:11211',
    '--set=settings.MCACHE_SRV=_memcache._tcp.a',
  ];
  t.match(await missing('ratelimit', memcached, ...both), /settings\.MCACHE_SRV: one of them/);
  t.match(await missing('ratelimit', '--set=rules.source=files'), /rules\.files or rules\.existingConfigMap/);
  t.match(await missing('xds', '--set=certManager.enabled=true'), /certManager\.issuerRef: who signs/);
  const counterApi = ['--set=counterApi.enabled=true', '--set=counterApi.tls.existingSecret=tls'];
  t.match(
    await missing('ratelimit', ...counterApi),
    /secretSettings\.ADMIN_TOKEN or counterApi\.tls\.requireClientCertificate/,
  );
  t.match(
    await missing('ratelimit', '--set=counterApi.tls.requireClientCertificate=true'),
    /counterApi\.tls\.existingSecret, because of counterApi\.tls\.requireClientCertificate/,
  );
});

t.test('each part can be left out of a release for evaluation', { skip }, async (t) => {
  const development = ['--set=dev.enabled=true', `--set=dev.secret=${'0'.repeat(32)}`];
  for (const part of ['auth', 'ratelimit', 'xds', 'console']) {
    const { code, stderr } = await template('tollgate', [...development, `--set=${part}.enabled=false`]);
    t.equal(code, 0, stderr);
  }
});

t.test('all missing values of all charts are in one message', { skip }, async (t) => {
  const values = [
    'auth.httpRoute.enabled=true',
    'auth.settings.SVC_SMTP_HOST=smtp.example.com',
    'ratelimit.settings.BACKEND_TYPE=memcache',
    'ratelimit.rules.source=files',
    'xds.certManager.enabled=true',
  ].map((value) => `--set=${value}`);
  const { stderr } = await runHelm(['template', 'tg', 'charts/tollgate', ...clusterArguments, ...values]);
  const named = [...stderr.matchAll(/^ {2}([\w.]+)/gm)].map(([, value]) => value);
  t.strictSame(named, [
    'auth.settings.SVC_API_EXTERNAL_URL',
    'auth.settings.SVC_SITE_URL',
    'auth.settings.SVC_SMTP_ADMIN_EMAIL',
    'auth.httpRoute.hostnames',
    'auth.httpRoute.parentRefs',
    'ratelimit.settings.MCACHE_HOST_PORT',
    'ratelimit.rules.files',
    'xds.certManager.issuerRef',
  ]);
});

t.test(
  'a new installation of the auth server has the strict profile, unless it is set',
  { skip },
  async (t) => {
    const profile = async (...args: string[]) =>
      /name: SVC_SECURITY_PROFILE\n\s+value: "?(\w+)/.exec((await template('auth', args)).stdout)?.[1];
    t.equal(await profile(), 'strict');
    t.equal(await profile('--set=settings.SVC_SECURITY_PROFILE=standard'), 'standard');
    t.equal(await profile('--set=settings.SVC_SECURITY_PROFILE=null'), undefined);
  },
);

t.test('required values are the settings that the service cannot start without', { skip }, async (t) => {
  for (const { name, settings, settingDefaults } of serviceCharts) {
    const required = Object.values(settings)
      .filter(({ env, secret }) => !secret && settingDefaults[env] === undefined)
      .filter(({ fallback }) => fallback === undefined)
      .map(({ env }) => env);
    const { stderr } = await runHelm(['template', 'tg', `charts/${name}`, ...clusterArguments]);
    const named = [...stderr.matchAll(/^ {2}settings\.(\w+)/gm)].map(([, env]) => env);
    t.strictSame(new Set(named), new Set(required), name);
  }
});

t.test('required settings may come from a Secret or a variable of their own', { skip }, async (t) => {
  const code = async (...args: string[]) =>
    (await runHelm(['template', 'tg', 'charts/auth', ...clusterArguments, ...args])).code;
  t.not(await code('--set=settings.SVC_SITE_URL=https://shop.example.com'), 0);
  t.equal(await code('--set=existingSecret=auth-secrets'), 0);
  t.equal(await code('--set=extraEnvFrom[0].configMapRef.name=auth-settings'), 0);
  t.equal(
    await code(
      ...['--set=settings.SVC_SITE_URL=https://shop.example.com'],
      '--set=extraEnv[0].name=API_EXTERNAL_URL,extraEnv[0].value=https://auth.example.com',
    ),
    0,
  );
});

t.test(
  'the address of Redis is a setting, or the key of a Secret because it may hold a password',
  {
    skip,
  },
  async (t) => {
    const fromSecret = [
      '--set=secretSettings.KVSTORE_URL.name=redis',
      '--set=secretSettings.KVSTORE_URL.key=url',
    ];
    const [container] = await getContainers('ratelimit', fromSecret);
    t.match(
      container?.env?.find(({ name }) => name === 'KVSTORE_URL'),
      { valueFrom: { secretKeyRef: { name: 'redis', key: 'url' } } },
    );
    const both = await template('ratelimit', [...fromSecret, '--set=settings.KVSTORE_URL=redis:6379']);
    t.match(both.stderr, /settings\.KVSTORE_URL and secretSettings\.KVSTORE_URL: one of them/);
  },
);

t.test('names of releases and namespaces are quoted', { skip }, async (t) => {
  const secret = `--set=dev.secret=${'0'.repeat(32)}`;
  const { stdout, stderr } = await runHelm([
    ...['template', 'true', 'charts/tollgate', '--namespace=123', ...clusterArguments],
    ...['--values=charts/tollgate/ci/dev-values.yaml', secret],
  ]);
  const manifests = parseManifests(stdout);
  t.ok(manifests.length > 20, stderr);
  // Schemas of CRDs have fields of these names.
  const objects = manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition');
  const found = objects.flatMap((manifest) =>
    valuesAt(manifest, /^(namespace|app.kubernetes.io\/instance)$/),
  );
  t.strictSame(new Set(found), new Set(['true', '123']));
});

t.test('large numbers are written in full', { skip }, async (t) => {
  const variables = await getVariables('ratelimit', [
    '--values=charts/ratelimit/ci/files-values.yaml',
    '--set=settings.XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=67108864',
  ]);
  t.equal(variables.get('MEMORY_MAX_COUNTERS'), '1000000');
  t.equal(variables.get('XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES'), '67108864');
  t.equal(variables.get('NEAR_LIMIT_RATIO'), '0.75');
});

t.test('a setting overrides what the chart computes, and is not a template', { skip }, async (t) => {
  const xds = await getVariables('xds', ['--set=settings.XDS_LEASE_NAME=reports']);
  t.equal(xds.get('XDS_LEASE_NAME'), 'reports');
  const auth = await getVariables('auth', ['--values=charts/auth/ci/full-values.yaml']);
  t.equal(auth.get('SVC_SMS_TEMPLATE'), 'Your code is {{ .Code }}');
});

t.test('a Secret with the authority of a store enables TLS', { skip }, async (t) => {
  const variables = await getVariables('ratelimit', [
    ...['redis.tls.existingSecret=redis-ca', 'redis.tls.clientCertificate=true'].map(
      (value) => `--set=${value}`,
    ),
    '--set=memcached.tls.existingSecret=memcached-ca',
    '--set=settings.KVSTORE_PERSECOND_TLS=false',
  ]);
  const found = [...variables].filter(([name]) => /^(KVSTORE|MCACHE)_\w*TLS/.test(name));
  t.strictSame(Object.fromEntries(found), {
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: '/etc/tollgate/redis/ca.crt',
    KVSTORE_TLS_CLIENT_CERT: '/etc/tollgate/redis/tls.crt',
    KVSTORE_TLS_CLIENT_KEY: '/etc/tollgate/redis/tls.key',
    // The setting comes first.
    KVSTORE_PERSECOND_TLS: 'false',
    MCACHE_TLS: 'true',
    MCACHE_TLS_CACERT: '/etc/tollgate/memcached/ca.crt',
  });
});

t.test('a Secret with the credentials of Redis is mounted as files', { skip }, async (t) => {
  const credentials = async (...values: readonly string[]) => {
    const args = ['existingSecret=login', ...values].map((value) => `--set=redis.credentials.${value}`);
    const variables = await getVariables('ratelimit', args);
    return Object.fromEntries([...variables].filter(([name]) => name.includes('AUTH')));
  };
  const folder = '/etc/tollgate/redis-credentials';
  t.strictSame(await credentials(), { KVSTORE_AUTH_FILE: `${folder}/password` });
  t.strictSame(await credentials('passwordKey=p', 'usernameKey=u', 'sentinelKey=s', 'perSecond=true'), {
    KVSTORE_AUTH_FILE: `${folder}/p`,
    KVSTORE_AUTH_USERNAME_FILE: `${folder}/u`,
    KVSTORE_SENTINEL_AUTH_FILE: `${folder}/s`,
    KVSTORE_PERSECOND_AUTH_FILE: `${folder}/p`,
    KVSTORE_PERSECOND_AUTH_USERNAME_FILE: `${folder}/u`,
    KVSTORE_PERSECOND_SENTINEL_AUTH_FILE: `${folder}/s`,
  });
});

t.test('with TLS, probes use the HTTP port', { skip }, async (t) => {
  const probes = async (chart: string, ...args: string[]) => {
    const [container] = await getContainers(chart, args);
    return { readiness: container?.readinessProbe, liveness: container?.livenessProbe };
  };
  t.match(await probes('xds', '--set=tls.mode=none'), {
    readiness: { grpc: { port: 18000, service: 'xds' } },
  });
  t.match(await probes('xds'), { readiness: { httpGet: { path: '/readyz', port: 'admin' } } });
  t.match(await probes('xds', '--set=tls.existingSecret=tls'), {
    readiness: { httpGet: { path: '/readyz', port: 'admin' } },
  });
  t.match(await probes('ratelimit'), { readiness: { grpc: { port: 8081, service: 'ratelimit' } } });
  t.match(await probes('ratelimit', '--set=tls.existingSecret=tls'), {
    readiness: { httpGet: { path: '/healthcheck', port: 'http' } },
  });
});

t.test('images are named by registry, tag or digest', { skip }, async (t) => {
  const image = async (...args: string[]) => (await getContainers('xds', args))[0]?.image;
  const { version } = packageJson;
  t.equal(await image(), `${releaseRegistry}/tollgate/xds:${version}`);
  t.equal(
    await image('--set=global.imageRegistry=images.example.com'),
    `images.example.com/tollgate/xds:${version}`,
  );
  t.equal(
    await image('--set=image.registry=r.example.com,image.repository=x,image.tag=v2'),
    'r.example.com/x:v2',
  );
  t.equal(
    await image('--set=image.tag=v2,image.digest=sha256:12'),
    `${releaseRegistry}/tollgate/xds@sha256:12`,
  );
  t.equal(await image('--set=image.repository=local/xds'), `local/xds:${version}`, 'built elsewhere');
});

t.test('only the xDS server has a token for the API server', { skip }, async (t) => {
  const objects = parseManifests(
    await renderChart('tollgate', ['--values=charts/tollgate/ci/dev-values.yaml']),
  );
  const withToken = getPodTemplates(objects).filter(
    ({ spec }) => spec.automountServiceAccountToken !== false,
  );
  t.strictSame(
    withToken.map(({ of }) => of),
    ['Deployment tg-xds'],
  );
});

t.test('with an issuer that is the cluster the auth server has a token, too', { skip }, async (t) => {
  for (const flags of [
    ['--values=charts/auth/ci/full-values.yaml'],
    [
      '--values=charts/auth/ci/default-values.yaml',
      '--set=routes.existingConfigMap=routes,routes.kubernetesIssuer=true',
    ],
  ]) {
    const [template] = getPodTemplates(parseManifests(await renderChart('auth', flags)));
    t.equal(template?.spec.automountServiceAccountToken, true, flags.join(' '));
  }
});

t.test('with a NetworkPolicy of limiters the values allow their store', { skip }, async (t) => {
  for (const { file, ports } of [
    { file: 'redis-cluster', ports: [6379] },
    { file: 'sentinel', ports: [6379, 26379] },
    { file: 'memcached', ports: [11211] },
  ]) {
    const manifests = await renderChart('tollgate', [`--values=charts/tollgate/ci/${file}-values.yaml`]);
    const isPolicy = ({ kind, metadata }: ManifestObject) =>
      kind === 'NetworkPolicy' && metadata.name === 'tg-ratelimit';
    const [policy] = parseManifests(manifests).filter(isPolicy);
    t.match(
      policy?.spec,
      { egress: [{}, { to: [{ podSelector: {} }] }, { to: [{}], ports: ports.map((port) => ({ port })) }] },
      file,
    );
  }
});

t.test('no password is in the templates of an ordinary release', { skip }, async (t) => {
  for (const { chart, valuesFile } of await chartCases()) {
    if (valuesFile.includes('/dev-')) continue;
    const objects = parseManifests(await renderChart(chart, [`--values=${valuesFile}`]));
    const secrets = objects.filter(({ kind }) => kind === 'Secret');
    t.ok(
      secrets.every(({ data, stringData }) => data === undefined && stringData === undefined),
      valuesFile,
    );
  }
});

t.test('ADS requires certificates unless disabled', { skip }, async (t) => {
  const tls = async (chart: string, pattern: RegExp, ...args: string[]) =>
    Object.fromEntries([...(await getVariables(chart, args))].filter(([name]) => pattern.test(name)));
  const server = (...args: string[]) => tls('xds', /^XDS_GRPC_(?:OWN_CA|PLAINTEXT|TLS_CERT|CLIENT)/, ...args);
  t.strictSame(await server(), { XDS_GRPC_OWN_CA: 'true', XDS_GRPC_CLIENT_SECRETS: '' });
  t.strictSame(await server('--set=tls.limiterNamespaces={shop,default}'), {
    XDS_GRPC_OWN_CA: 'true',
    XDS_GRPC_CLIENT_SECRETS: 'shop/tg-xds-client',
  });
  t.strictSame(await server('--set=tls.mode=none'), { XDS_GRPC_PLAINTEXT: 'true' });
  t.strictSame(await server('--set=tls.existingSecret=own'), {
    XDS_GRPC_TLS_CERT: '/etc/tollgate/tls/tls.crt',
    XDS_GRPC_CLIENT_CACERT: '/etc/tollgate/tls/ca.crt',
  });
  const limiter = (...args: string[]) => tls('ratelimit', /XDS_\w*TLS/, ...args);
  const folder = '/etc/tollgate/xds-client';
  t.strictSame(await limiter(), {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: `${folder}/ca.crt`,
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: `${folder}/tls.crt`,
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: `${folder}/tls.key`,
  });
  t.strictSame(await limiter('--set=rules.xds.tls.mode=server'), { CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' });
  t.strictSame(await limiter('--set=rules.xds.tls.mode=none'), { CONFIG_GRPC_XDS_SERVER_USE_TLS: 'false' });
});

t.test('limiters mount the Secret that the xDS server of their release fills', { skip }, async (t) => {
  const objects = parseManifests(
    await renderChart('tollgate', ['--values=charts/tollgate/ci/small-values.yaml']),
  );
  const limiter = getPodTemplates(objects).find(({ of }) => of === 'Deployment tg-ratelimit');
  const secret = limiter?.spec.volumes?.find(({ name }) => name === 'xds-client')?.secret;
  t.match(secret, {
    secretName: 'tg-xds-client',
    items: [{ key: 'ca.crt' }, { key: 'tls.crt' }, { key: 'tls.key' }],
  });
  t.ok(objects.some(({ kind, metadata }) => kind === 'Secret' && metadata.name === 'tg-xds-client'));
  const without = (...args: string[]) => template('tollgate', args);
  t.match((await without('--set=xds.tls.mode=none')).stderr, /limiters have no certificate/);
  const name = ['--set=xds.fullnameOverride=ads', '--set=ratelimit.rules.xds.address=ads-headless:18000'];
  t.match((await without(...name)).stderr, /rules\.xds\.tls\.existingSecret=ads-client/);
});

t.test('the counter API is in the Service with TLS only, for callers of its own', { skip }, async (t) => {
  const token = 'secretSettings.ADMIN_TOKEN.name=a,secretSettings.ADMIN_TOKEN.key=b';
  const render = async (...values: string[]) => {
    const args = values.map((value) => `--set=${value}`);
    const objects = parseManifests(await renderChart('ratelimit', args));
    const find = (wanted: string) =>
      JSON.stringify(
        objects.find(({ kind, metadata }) => kind === wanted && metadata.name === 'tg-ratelimit')?.spec,
      );
    return { service: find('Service'), policy: find('NetworkPolicy'), pods: find('Deployment') };
  };
  for (const values of [[], ['counterApi.enabled=true', token]]) {
    const { service, policy, pods } = await render(...values);
    t.notMatch(service, /6071/);
    t.match(
      policy,
      '{"ports":[{"port":6071,"protocol":"TCP"}],"from":[{"podSelector":{"matchLabels":{"app.kubernetes.io/instance":"tg","tollgate.dev/console":"true"}}}]}',
      'only for the console of the release',
    );
    t.equal(/"ADMIN_PORT","value":"6071"/.test(pods), values.length > 0);
    t.notMatch(pods, /ADMIN_HOST/);
  }
  const tls = ['counterApi.enabled=true', 'counterApi.tls.existingSecret=tls', token];
  const { service, policy, pods } = await render(
    ...tls,
    'counterApi.from[0].podSelector.matchLabels.app=shop',
  );
  t.match(service, '"port":6071,"targetPort":"https-admin","protocol":"TCP","appProtocol":"https"');
  t.match(
    policy,
    '{"ports":[{"port":6071,"protocol":"TCP"}],"from":[{"podSelector":{"matchLabels":{"app.kubernetes.io/instance":"tg","tollgate.dev/console":"true"}}},{"podSelector":{"matchLabels":{"app":"shop"}}}]}',
  );
  t.match(pods, '"ADMIN_HOST","value":"0.0.0.0"');
});

t.test('only limiters reach ADS by default', { skip }, async (t) => {
  const adsFrom = async (...args: string[]) => {
    const objects = parseManifests(await renderChart('xds', args));
    const policy = objects.find(({ kind }) => kind === 'NetworkPolicy');
    // Ours, and made just now.
    return (policy?.spec as { ingress: { from: unknown }[] } | undefined)?.ingress[0]?.from;
  };
  const podSelector = { matchLabels: { 'tollgate.dev/ads-client': 'true' } };
  const inNamespace = (name: string) => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
  });
  t.strictSame(await adsFrom(), [{ podSelector }]);
  t.strictSame(await adsFrom('--set=tls.limiterNamespaces={shop}'), [
    { podSelector },
    { ...inNamespace('shop'), podSelector },
  ]);
  const more = 'networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8';
  t.strictSame(await adsFrom(`--set=${more}`), [{ podSelector }, { ipBlock: { cidr: '10.0.0.0/8' } }]);
  const limiter = parseManifests(await renderChart('ratelimit', [])).find(
    ({ kind }) => kind === 'Deployment',
  );
  t.match(limiter?.spec, { template: { metadata: { labels: podSelector.matchLabels } } });
});

t.test('only gateways reach ext_authz and the rate limit service by default', { skip }, async (t) => {
  const sources = async (chart: string, ...args: string[]) => {
    const { stdout } = await template(chart, args);
    const policy = parseManifests(stdout).find(({ kind }) => kind === 'NetworkPolicy');
    // Ours, and made just now.
    const spec = policy?.spec as { ingress: { ports: { port: number }[]; from?: unknown }[] } | undefined;
    return new Map(
      spec?.ingress.flatMap(({ ports, from }) => ports.map(({ port }) => [port, from] as const)),
    );
  };
  const ofGateways = (...values: string[]) => [
    { podSelector: {} },
    {
      namespaceSelector: {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
      },
    },
  ];
  const usual = ofGateways('envoy-gateway-system', 'istio-system', 'istio-ingress');
  const auth = await sources('auth');
  t.strictSame([auth.get(9001), auth.get(9003), auth.get(9002)], [usual, usual, undefined]);
  const limiter = await sources('ratelimit');
  t.strictSame([limiter.get(8081), limiter.get(8080)], [usual, usual]);
  const other = await sources('ratelimit', '--set=global.gatewayNamespaces={shop}');
  t.strictSame(other.get(8081), ofGateways('shop'));
  const own = await sources('ratelimit', '--set=global.gatewayNamespaces=null');
  t.strictSame(own.get(8081), [{ podSelector: {} }]);
  const release = { podSelector: { matchLabels: { 'app.kubernetes.io/instance': 'tg' } } };
  for (const chart of ['auth', 'ratelimit']) {
    const open = await sources(chart, '--set-json=networkPolicy.from=[{"namespaceSelector":{}}]');
    t.strictSame(open.get(chart === 'auth' ? 9001 : 8081), [release, { namespaceSelector: {} }]);
  }
});

t.test('the console finds the parts of its release, and the auth server knows it', { skip }, async (t) => {
  const release = async (...values: readonly string[]) => {
    const set = values.map((value) => `--set=${value}`);
    const objects = parseManifests(await renderChart('tollgate', set));
    const find = (wanted: string, name: string) =>
      objects.find(({ kind, metadata }) => kind === wanted && metadata.name === name);
    return { parts: find('ConfigMap', 'tg-console')?.data, find };
  };
  const development = ['dev.enabled=true', `dev.secret=${'0'.repeat(32)}`];
  const { parts, find } = await release(...development);
  t.strictSame(parts, {
    CONSOLE_AUTH_ISSUER: 'http://localhost:9002',
    CONSOLE_AUTH_REPLICA_URLS: 'http://tg-auth-headless:9002',
    CONSOLE_AUTH_URL: 'http://tg-auth:9002',
    CONSOLE_EXTERNAL_URL: 'http://localhost:8070',
    CONSOLE_LIMITER_URLS: 'http://tg-ratelimit-headless:6071',
    CONSOLE_METRICS_URLS:
      'http://tg-auth-headless:9100/metrics,http://tg-ratelimit-headless:9090/metrics,http://tg-xds-headless:8090/metrics',
    CONSOLE_XDS_URL: 'http://tg-xds-headless:8090',
  });
  t.match(find('Secret', 'tg-auth')?.stringData, {
    SVC_OAUTH_SERVER_CONSOLE_URL: 'http://localhost:8070',
    SVC_OAUTH_SERVER_ENABLED: 'true',
    SVC_PAGES_ENABLED: 'true',
  });
  t.match(JSON.stringify(find('Deployment', 'tg-console')), '"tollgate.dev/console":"true"');
  const without = await release(...development, 'xds.enabled=false', 'ratelimit.enabled=false');
  t.strictSame(without.parts, {
    CONSOLE_AUTH_ISSUER: 'http://localhost:9002',
    CONSOLE_AUTH_REPLICA_URLS: 'http://tg-auth-headless:9002',
    CONSOLE_AUTH_URL: 'http://tg-auth:9002',
    CONSOLE_EXTERNAL_URL: 'http://localhost:8070',
    CONSOLE_METRICS_URLS: 'http://tg-auth-headless:9100/metrics',
  });
  const off = await release(...development, 'console.enabled=false');
  t.strictSame([off.parts, off.find('Deployment', 'tg-console')], [undefined, undefined]);

  const usual = [
    ...['auth.settings.SVC_SITE_URL=https://shop.example.com', 'ratelimit.counterApi.enabled=true'],
    'auth.settings.SVC_API_EXTERNAL_URL=https://auth.example.com/auth/v1',
    ...['existingSecret=counter-api', 'counterApi.tls.existingSecret=tls', 'fullnameOverride=limits'].map(
      (value) => `ratelimit.${value}`,
    ),
  ];
  t.notOk((await release(...usual)).find('Deployment', 'tg-console'));
  const url = 'https://console.example.com';
  const production = await release(...usual, 'console.enabled=true', `global.consoleUrl=${url}`);
  t.match(production.parts, {
    CONSOLE_AUTH_ISSUER: 'https://auth.example.com/auth/v1',
    CONSOLE_LIMITER_URLS: 'https://limits-headless.default.svc:6071',
    CONSOLE_EXTERNAL_URL: undefined,
  });
  for (const [deployment, variable] of [
    ['tg-auth', 'SVC_OAUTH_SERVER_CONSOLE_URL'],
    ['tg-console', 'CONSOLE_EXTERNAL_URL'],
  ] as const)
    t.match(
      JSON.stringify(production.find('Deployment', deployment)),
      `{"name":"${variable}","value":"${url}"}`,
    );
});

t.test('the console reaches each replica of the auth server', { skip }, async (t) => {
  const values = [
    ...['--values=charts/tollgate/ci/small-values.yaml', '--set=console.enabled=true'],
    '--set=global.consoleUrl=https://console.example.com',
  ];
  const objects = parseManifests(await renderChart('tollgate', values));
  const find = (wanted: string, name: string) =>
    objects.find(({ kind, metadata }) => kind === wanted && metadata.name === name);
  const written = JSON.stringify(find('ConfigMap', 'tg-console')?.data);
  const [, address = ''] = /"CONSOLE_AUTH_REPLICA_URLS":"([^"]+)"/.exec(written) ?? [];
  const url = new URL(address);
  const headless = find('Service', url.hostname)?.spec;
  // Without an address of its own, a Service has no other port than its Pods.
  t.match(headless, { clusterIP: 'None', ports: [{}, {}, {}, { name: 'http', port: Number(url.port) }] });
  const containers = getPodTemplates(objects).find(({ of }) => of === 'Deployment tg-auth')?.spec.containers;
  t.ok(containers?.[0]?.ports?.some(({ containerPort }) => containerPort === Number(url.port)));
  const { stdout } = await template('auth', ['--set-json=networkPolicy.from=[{"namespaceSelector":{}}]']);
  const policy = parseManifests(stdout).find(({ kind }) => kind === 'NetworkPolicy');
  const release = { podSelector: { matchLabels: { 'app.kubernetes.io/instance': 'tg' } } };
  t.match(policy?.spec, { ingress: [{ ports: [{ port: 9002 }], from: [release, {}] }] });
  // Another address, such as that of a mesh, need not have the ports of the Pods.
  const other = '--set=console.settings.CONSOLE_AUTH_URL=https://auth.example.com';
  const own = await renderChart('tollgate', [...values, other]);
  t.match(own, 'CONSOLE_AUTH_URL: http://tg-auth:9002');
  t.notMatch(own, 'CONSOLE_AUTH_REPLICA_URLS: http');
});

t.test('the console calls only its release, and what the values add', { skip }, async (t) => {
  const objects = parseManifests(
    await renderChart('console', ['--values=charts/console/ci/full-values.yaml']),
  );
  t.match(objects.find(({ kind }) => kind === 'NetworkPolicy')?.spec, {
    policyTypes: ['Ingress', 'Egress'],
    egress: [
      { ports: [{ port: 53 }, { port: 53 }], to: undefined },
      { to: [{ podSelector: { matchLabels: { 'app.kubernetes.io/instance': 'tg' } } }] },
      { to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }] },
    ],
  });
  const prometheus = await template('console', ['--set=settings.PROMETHEUS_URL=http://prometheus:9090']);
  t.match(
    prometheus.stderr,
    /networkPolicy\.to: the Pods of Prometheus, because of settings\.PROMETHEUS_URL/,
  );
  const nothing = await runHelm(['template', 'tg', 'charts/console', ...clusterArguments]);
  t.match(nothing.stderr, /settings\.CONSOLE_AUTH_ISSUER, such as .*\n {2}global\.consoleUrl, such as/);
});

t.test('rendering is deterministic', { skip }, async (t) => {
  const args = ['--values=charts/tollgate/ci/dev-values.yaml'];
  t.equal(await renderChart('tollgate', args), await renderChart('tollgate', args));
});

function template(chart: string, args: readonly string[]) {
  const valuesFile = chart === 'tollgate' ? 'small' : 'default';
  return runHelm([
    'template',
    'tg',
    `charts/${chart}`,
    `--values=charts/${chart}/ci/${valuesFile}-values.yaml`,
    ...clusterArguments,
    ...args,
  ]);
}

async function getContainers(chart: string, args: readonly string[]): Promise<readonly ContainerSpec[]> {
  const objects = parseManifests(await renderChart(chart, args));
  return getPodTemplates(objects).find(({ of }) => of.startsWith('Deployment'))?.spec.containers ?? [];
}

async function getVariables(
  chart: string,
  args: readonly string[],
): Promise<Map<string, string | undefined>> {
  const [container] = await getContainers(chart, args);
  return new Map((container?.env ?? []).map(({ name, value }) => [name, value]));
}

/** The values of all fields with a name, at any depth. */
function valuesAt(value: unknown, name: RegExp): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, below]) => [
    ...(name.test(key) ? [below] : []),
    ...valuesAt(below, name),
  ]);
}

t.test('the webhook is on when the API server can verify its certificate', { skip }, async (t) => {
  const render = async (...values: readonly string[]) => {
    const objects = parseManifests(
      await renderChart(
        'xds',
        values.map((value) => `--set=${value}`),
      ),
    );
    const webhook = objects.find(({ kind }) => kind === 'ValidatingWebhookConfiguration');
    // Parsed manifests: the shape is that of the API.
    const { metadata, webhooks } = (webhook ?? {}) as {
      readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
      readonly webhooks?: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
    };
    const isServed = getPodTemplates(objects).some(({ spec }) =>
      JSON.stringify(spec).includes('"XDS_ADMISSION_ENABLED"'),
    );
    const mayWrite = objects.some(
      ({ kind, metadata }) => kind === 'ClusterRole' && metadata.name.endsWith('-admission'),
    );
    const { annotations } = metadata ?? {};
    return { isServed, mayWrite, annotations, caBundle: webhooks?.[0]?.clientConfig.caBundle };
  };
  const certManager = ['certManager.enabled=true', 'certManager.issuerRef.name=ca'];
  const inject = 'cert-manager.io/inject-ca-from';
  t.strictSame(await render(), {
    isServed: true,
    mayWrite: true,
    annotations: undefined,
    caBundle: undefined,
  });
  t.strictSame(await render(...certManager), {
    isServed: true,
    mayWrite: false,
    annotations: { [inject]: 'default/tg-xds-tls' },
    caBundle: undefined,
  });
  const own = 'tls.existingSecret=own';
  const off = { isServed: false, mayWrite: false, annotations: undefined, caBundle: undefined };
  t.strictSame(await render(own), off);
  t.strictSame(await render(own, ...certManager), off, 'cert-manager does not issue that of the Secret');
  t.strictSame(await render('tls.mode=none', 'admissionWebhook.caBundle=PEM'), off);
  t.strictSame(await render(own, 'admissionWebhook.caBundle=PEM'), {
    isServed: true,
    mayWrite: false,
    annotations: undefined,
    caBundle: Buffer.from('PEM').toString('base64'),
  });
  const direct = 'cert-manager\\.io/inject-ca-from-secret';
  t.match(await render(own, `admissionWebhook.annotations.${direct}=tg/own`), {
    isServed: true,
    annotations: { 'cert-manager.io/inject-ca-from-secret': 'tg/own' },
  });
});
