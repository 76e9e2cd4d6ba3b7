import { createLogger } from '@tollgate/kit/logger';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { readMailSources } from '../../src/messages/mail-sources.ts';
import { MailTemplates } from '../../src/messages/mail-templates.ts';
import { Metrics } from '../../src/metrics.ts';

/** Templates with an invitation at `location`. */
function templatesAt(location: string, fetch: (url: URL) => Promise<string>) {
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com/app',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: 'postgres://u:p@db/auth',
    SVC_JWT_SECRET: 'secret',
    SVC_MAILER_TEMPLATES_INVITE: location,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const clock = fakeClock();
  const logs: string[] = [];
  const metrics = new Metrics();
  const sources = [...readMailSources(read.settings).values()].flat();
  const templates = new MailTemplates({
    settings: read.settings,
    sources,
    fetch,
    metrics,
    logger: createLogger({
      level: 'debug',
      format: 'json',
      destination: { write: (line) => void logs.push(line) },
    }),
    nowMs: clock.nowMs,
  });
  const [source] = sources.filter(({ kind }) => kind === 'INVITE');
  if (source === undefined) throw new Error('no invitation');
  const invitation = async () => (await templates.get(source)).render({ Token: '1' });
  const failures = async () =>
    Object.fromEntries(
      (await metrics.mailTemplateFailures.get()).values.map(({ labels, value }) => [labels.reason, value]),
    );
  return { clock, templates, invitation, logs, failures };
}

t.test('a template is fetched from a URL or a path below the site, and cached for ten minutes', async (t) => {
  for (const [location, url] of [
    ['https://cdn.example.com/t.html', 'https://cdn.example.com/t.html'],
    ['/mail/t.html', 'https://example.com/app/mail/t.html'],
  ] as const) {
    const fetched: string[] = [];
    const { clock, invitation } = templatesAt(location, async (from) => {
      fetched.push(from.href);
      return `v${fetched.length} {{ .Token }}`;
    });
    const together = await Promise.all([invitation(), invitation()]);
    t.same(together, ['v1 1', 'v1 1'], 'fetched once');
    clock.advance(10 * 60_000 - 1);
    t.equal(await invitation(), 'v1 1');
    t.same(fetched, [url]);
    clock.advance(1);
    t.equal(await invitation(), 'v1 1', 'refreshed in the background');
    t.equal(await invitation(), 'v2 1');
  }
});

t.test('unavailable or invalid template is replaced and fetched again after ten seconds', async (t) => {
  const answers = [new Error('down'), '{{ range }}', 'good', new Error('down again')];
  let fetches = 0;
  const { clock, invitation, logs, failures } = templatesAt('https://cdn.example.com/t.html', async () => {
    const answer = answers[fetches++];
    if (typeof answer !== 'string') throw answer;
    return answer;
  });
  t.match(await invitation(), /invited/);
  t.match(await invitation(), /invited/);
  t.equal(fetches, 1);
  clock.advance(10_000);
  t.match(await invitation(), /invited/, 'invalid template');
  clock.advance(10_000);
  t.equal(await invitation(), 'good');
  clock.advance(10 * 60_000);
  t.equal(await invitation(), 'good');
  t.equal(await invitation(), 'good', 'the last good version stays active');
  t.equal(fetches, 4);
  t.same(await failures(), { unavailable: 2, invalid: 1, render: 0 });
  t.equal(logs.length, 3);
  t.match(logs[0], /"level":"error".*"used":"the built-in template".*mail template unavailable/);
  t.match(logs[1], /line 1: missing value for range.*mail template invalid/);
  t.match(logs[2], /"used":"the last good version"/);
});

t.test('invalid template at start is an error with its line', async (t) => {
  const texts = ['fine', '<p>\n{{ nope }}', '<a href="'];
  for (const [text, message] of [
    [texts[0], undefined],
    [texts[1], /invalid mail templates: INVITE \(\/t\.html\): line 2: function "nope" not defined/],
    [texts[2], /INVITE .*ends in a non-text context/],
  ] as const) {
    const { templates } = templatesAt('/t.html', async () => text ?? '');
    if (message === undefined) await t.resolves(templates.start());
    else await t.rejects(templates.start(), { message });
  }
});

t.test('template that is unavailable at start is fetched later', async (t) => {
  const texts: string[] = [];
  const { templates, invitation, clock, failures } = templatesAt('/t.html', async () => {
    const [text] = texts;
    if (text === undefined) throw new Error('connection refused');
    return text;
  });
  await templates.start();
  t.match(await invitation(), /invited/);
  t.match(await failures(), { unavailable: 1 });
  texts.push('fetched');
  clock.advance(10_000);
  t.match(await invitation(), 'fetched');
});
