import t from 'tap';
import { html } from '../../../src/surfaces/admin/html.ts';

t.test('text is escaped wherever it stands, markup is not, and nothing is nothing', async (t) => {
  const items = ['<b>', `"'&`].map((text) => html`<li>${text}</li>`);
  t.equal(
    html`<ul title="${'"'}">${items}</ul>${undefined}${7}${['<', html`<br>`]}`.html,
    '<ul title="&quot;"><li>&lt;b&gt;</li><li>&quot;&#39;&amp;</li></ul>7&lt;<br>',
  );
});
