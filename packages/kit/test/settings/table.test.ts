import { bool, defineSettings, duration, renderSettingsTable, text } from '@tollgate/kit/settings';
import t from 'tap';

t.test('a spec is rendered as one table per group, with nothing secret in it', (t) => {
  const spec = defineSettings({
    flush: duration({ env: 'FLUSH', group: 'Statistics', default: '10s', doc: 'How often a|b is\nsent.' }),
    auth: text({
      env: 'AUTH',
      aliases: ['REDIS_AUTH'],
      group: 'Cache',
      secret: true,
      default: 'hunter2',
      doc: 'Password.',
    }),
    key: text({ env: 'KEY', group: 'Cache', required: true, doc: 'Signs.' }),
    off: bool({ env: 'OFF', group: 'Statistics', default: false, doc: 'Turns it off.' }),
    prefix: text({ env: 'PREFIX', group: 'Cache', default: '', doc: 'Goes first.' }),
  });
  t.equal(
    renderSettingsTable(spec),
    `## Statistics

| Variable | Also read as | Default | Meaning | Form |
| --- | --- | --- | --- | --- |
| \`FLUSH\` |  | \`10s\` | How often a\\|b is sent. | a duration such as 10ms, 1.5s or 1h30m |
| \`OFF\` |  | \`false\` | Turns it off. | a boolean: true, t, 1, false, f or 0 |

## Cache

| Variable | Also read as | Default | Meaning | Form |
| --- | --- | --- | --- | --- |
| \`AUTH\` | \`REDIS_AUTH\` | (hidden) | Password. Secret: never printed. | text |
| \`KEY\` |  | required | Signs. | text that is not empty |
| \`PREFIX\` |  | empty | Goes first. | text |
`,
  );
  t.end();
});
