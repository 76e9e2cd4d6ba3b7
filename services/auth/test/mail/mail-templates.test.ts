import { createLogger } from '@tollgate/kit/logger';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { createMailTemplates } from '../../src/mail/mail-templates.ts';
import { readSettings } from '../../src/settings/settings.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });

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
  const templates = createMailTemplates({
    settings: read.settings,
    fetchText,
    logger: silent,
    nowMs: clock.nowMs,
  });
  const invitation = async () => (await templates.bodyOf('INVITE')).render({ Token: '1' });
  return { clock, templates, invitation };
}

t.test(
  'a template is fetched from a URL, or from a path of the site, and kept for ten minutes',
  async (t) => {
    for (const [location, url] of [
      ['https://cdn.example.com/t.html', 'https://cdn.example.com/t.html'],
      ['/mail/t.html', 'https://example.com/mail/t.html'],
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
  const { clock, invitation } = templatesOf('https://cdn.example.com/t.html', async () => {
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
});
