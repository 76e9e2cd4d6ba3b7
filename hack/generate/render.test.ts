import { defineSettings, port, type SettingsSpec, text } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import t from 'tap';
import { serviceCharts } from './charts/service-charts.ts';
import {
  formatWithBiome,
  mendAnchors,
  renderErrorsPage,
  renderIgnoredSettings,
  renderSettingsPage,
} from './render.ts';

/** Settings with such names get URLs, commands or values of headers. */
const mayHaveCredentials = /(?:URLS?|URI|ENDPOINT|DSN|WEBHOOK|COMMAND|HEADERS|TEMPLATES_\w+)$/;

/** Base URLs of services, public URLs, and lists of names of headers. */
const publicPaths = [
  /^SVC_(?:SITE|API_EXTERNAL|CUSTOM_OAUTH_EXTERNAL|OAUTH_SERVER_CONSOLE|PAGES_LOGO)_URL$/,
  /^SVC_(?:PASSWORD_HIBP|SECURITY_CAPTCHA|SMS_\w+)_URL$/,
  /^SVC_EXTERNAL_\w+_(?:URL|REDIRECT_URI)$/,
  /^SVC_API_ENDPOINT$/,
  /^(?:(?:XDS_)?ADMIN_KEYS|CONFIG_GRPC_XDS_SERVER)_URL$/,
  /^KVSTORE_(?:PERSECOND_)?URL$/,
  /^(?:CONSOLE_\w+|PROMETHEUS)_URLS?$/,
  /^SVC_(?:CORS_ALLOWED|EXT_AUTHZ_API_KEY)_HEADERS$/,
];

t.test('the settings page names every variable with its meaning', async (t) => {
  const spec = defineSettings({
    grpcPort: port({ env: 'GRPC_PORT', group: 'Servers', default: 8081, doc: 'TCP port of the gRPC server' }),
    auth: text({
      env: 'KVSTORE_AUTH',
      group: 'Redis',
      aliases: ['REDIS_AUTH'],
      secret: true,
      default: '',
      doc: 'Password',
    }),
  });
  const page = renderSettingsPage('the demo', spec);
  t.match(page, /^# Settings of the demo\n/);
  for (const word of ['GRPC_PORT', '8081', 'TCP port of the gRPC server', 'KVSTORE_AUTH', 'REDIS_AUTH']) {
    t.ok(page.includes(word), word);
  }
});

t.test('settings without effect come after the tables', async (t) => {
  const page = renderSettingsPage(
    'the demo',
    {},
    { end: renderIgnoredSettings({ LOG_SQL: 'Statements are not logged.' }) },
  );
  t.match(page, /\n\| `GOTRUE_LOG_SQL` \| Statements are not logged. \|\n$/);
});

t.test('defaults of a profile have a column of their own', async (t) => {
  const spec = defineSettings({
    port: port({ env: 'GRPC_PORT', aliases: [], group: 'Server', default: 8081, doc: 'TCP port' }),
  });
  const others = { title: 'With `strict`', values: { GRPC_PORT: '1' } };
  const page = renderSettingsPage('the demo', spec, { others });
  t.match(page, '| Variable | Also read as | Default | With `strict` | Meaning | Form |');
  t.match(page, '| `8081` | `1` | TCP port |');
});

t.test('the errors page has a section for each service and a row for each code', async (t) => {
  const page = renderErrorsPage({
    'the demo': { too_late: { definition: { httpStatus: 400, grpcStatus: 2, message: 'come earlier' } } },
  });
  t.match(page, /## Of the demo\n/);
  t.match(page, /\| `too_late` \| 400 \| 2 \| come earlier \|/);
});

t.test('generated Markdown passes the format check', async (t) => {
  const once = await formatWithBiome('docs/a.md', '# A\n|a|b|\n|---|---|\n|1|2|\n');
  t.match(once, /\n\n\| a/);
  t.equal(await formatWithBiome('docs/a.md', once), once);
});

t.test('a number that no heading has is removed from a link', async (t) => {
  t.equal(mendAnchors('[`K`](#kind-1)\n### Kind\n'), '[`K`](#kind)\n### Kind\n');
});

t.test('valid links and links without a match are kept', async (t) => {
  const page = '[a](#kind-1) [b](#kind) [c](#other-1) [d](x.md#kind-1)\n# Kind\n## Kind\n';
  t.equal(mendAnchors(page), page);
});

t.test('no secret of any service is in the report of its settings', async (t) => {
  const canary = 'canary-of-the-test';
  const report = (spec: SettingsSpec, env: Readonly<Record<string, string>>) =>
    JSON.stringify(new StartReport({ service: 'any', version: '', spec, sources: { env } }).get());
  for (const { name: service, settings: spec } of serviceCharts) {
    const settings = Object.values(spec);
    const secrets = settings.filter(({ secret, hidden }) => secret || hidden);
    t.ok(secrets.length > 0, service);
    for (const { env, aliases } of secrets)
      for (const variable of [env, ...aliases])
        t.notMatch(report(spec, { [variable]: canary }), canary, `${service}: ${variable}`);
    // Other texts may have credentials in URLs.
    const url = `https://user:${canary}@example.com/?key=${canary}`;
    const ofUrls = Object.fromEntries(settings.map(({ env }) => [env, url]));
    t.notMatch(report(spec, ofUrls), canary, `${service}: URLs`);
    // Webhooks and commands have them anywhere.
    const shown = settings
      .filter((setting) =>
        report({ setting }, { [setting.env]: `https://example.com/${canary}` }).includes(canary),
      )
      .map(({ env }) => env)
      .filter((name) => mayHaveCredentials.test(name) && !publicPaths.some((known) => known.test(name)));
    t.strictSame(shown, [], `${service}: hide the value or its path, or add the name to publicPaths`);
  }
});
