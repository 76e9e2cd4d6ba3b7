import { createLogger } from '@tollgate/kit/logger';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { createMailTemplates } from '../../src/messages/mail-templates.ts';

/** Templates whose text is what `fetchText` answers. */
function templatesOf(template: string, fetchText: (url: URL) => Promise<string>) {
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com/app',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: 'postgres://u:p@db/auth',
    SVC_JWT_SECRET: 'secret',
    SVC_MAILER_TEMPLATES_INVITE: template,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const clock = fakeClock();
  const logs: string[] = [];
  const failures: string[] = [];
  const templates = createMailTemplates({
    settings: read.settings,
    fetchText,
    logger: createLogger({
      level: 'debug',
      format: 'json',
      destination: { write: (line) => void logs.push(line) },
    }),
    nowMs: clock.nowMs,
    countFailure: (reason) => void failures.push(reason),
  });
  const invitation = async () => (await templates.bodyOf('INVITE')).render({ Token: '1' });
  return { clock, templates, invitation, logs, failures };
}

t.test(
  'a template is fetched from a URL, or from a path of the site, and kept for ten minutes',
  async (t) => {
    for (const [location, url] of [
      ['https://cdn.example.com/t.html', 'https://cdn.example.com/t.html'],
      ['/mail/t.html', 'https://example.com/app/mail/t.html'],
    ] as const) {
      const asked: string[] = [];
      const { clock, invitation } = templatesOf(location, async (from) => {
        asked.push(from.href);
        return `v${asked.length} {{ .Token }}`;
      });
      const together = await Promise.all([invitation(), invitation()]);
      t.same(together, ['v1 1', 'v1 1'], 'asked for once');
      clock.advance(10 * 60_000 - 1);
      t.equal(await invitation(), 'v1 1');
      t.same(asked, [url]);
      clock.advance(1);
      t.equal(await invitation(), 'v1 1', 'nobody waits for the new one');
      t.equal(await invitation(), 'v2 1');
    }
  },
);

t.test('what cannot be fetched or used is replaced, and asked for again after ten seconds', async (t) => {
  const answers = [new Error('down'), '{{ range }}', 'good', new Error('down again')];
  let asked = 0;
  const { clock, invitation, logs, failures } = templatesOf('https://cdn.example.com/t.html', async () => {
    const answer = answers[asked++];
    if (typeof answer !== 'string') throw answer;
    return answer;
  });
  t.match(await invitation(), /invited/);
  t.match(await invitation(), /invited/);
  t.equal(asked, 1);
  clock.advance(10_000);
  t.match(await invitation(), /invited/, 'it is no template');
  clock.advance(10_000);
  t.equal(await invitation(), 'good');
  clock.advance(10 * 60_000);
  t.equal(await invitation(), 'good');
  t.equal(await invitation(), 'good', 'the previous one is better than the built-in one');
  t.equal(asked, 4);
  t.same(failures, ['unavailable', 'invalid', 'unavailable']);
  t.equal(logs.length, 3);
  t.match(logs[0], /"level":"error".*"used":"the built-in template".*mail template unavailable/);
  t.match(logs[1], /line 1: missing value for range.*mail template invalid/);
  t.match(logs[2], /"used":"the last good version"/);
});

t.test(
  'templates are fetched at the start, and one that cannot be parsed is an error with its line',
  async (t) => {
    const texts = ['fine', '<p>\n{{ nope }}', '<a href="'];
    for (const [text, message] of [
      [texts[0], undefined],
      [texts[1], /invalid mail templates: INVITE \(\/t\.html\): line 2: function "nope" not defined/],
      [texts[2], /INVITE .*ends in a non-text context/],
    ] as const) {
      const { templates } = templatesOf('/t.html', async () => text ?? '');
      if (message === undefined) await t.resolves(templates.start());
      else await t.rejects(templates.start(), { message });
    }
  },
);

t.test('a template that is unavailable at the start is fetched later', async (t) => {
  const texts: string[] = [];
  const { templates, invitation, clock, failures } = templatesOf('/t.html', async () => {
    const [text] = texts;
    if (text === undefined) throw new Error('connection refused');
    return text;
  });
  await templates.start();
  t.match(await invitation(), /invited/);
  t.same(failures, ['unavailable']);
  texts.push('fetched');
  clock.advance(10_000);
  t.match(await invitation(), 'fetched');
});
