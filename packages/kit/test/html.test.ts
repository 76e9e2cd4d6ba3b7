import t from 'tap';
import { html, trustedHtml } from '../src/html.ts';

t.test('text is escaped, markup is not, and undefined and false are empty', async (t) => {
  const items = ['<b>', `"'&`].map((text) => html`<li>${text}</li>`);
  t.equal(
    html`<ul title="${'"'}">${items}</ul>${undefined}${7}${['<', html`<br>`]}${false}`.toString(),
    '<ul title="&quot;"><li>&lt;b&gt;</li><li>&quot;&#39;&amp;</li></ul>7&lt;<br>',
  );
});

t.test('only the functions of the module create markup', async (t) => {
  const forged = JSON.parse('{"html":"<b>","markup":"<b>","length":1,"map":null}');
  t.throws(() => html`${forged}`);
  t.equal(html`<style>${trustedHtml('a > b {}')}</style>`.toString(), '<style>a > b {}</style>');
});
