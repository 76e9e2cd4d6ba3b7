const htmlEntities: Readonly<Record<string, string>> = {
  '\0': '\uFFFD',
  '"': '&#34;',
  '&': '&amp;',
  "'": '&#39;',
  '<': '&lt;',
  '>': '&gt;',
};

/** What the function `html` does. */
export function escapeHtmlText(text: string): string {
  return text.replaceAll(/[\0"&'<>]/g, (char) => htmlEntities[char] ?? char);
}

/** Escapes a value for text and quoted attributes; `+` against browsers that guess UTF-7. */
export function escapeHtmlValue(text: string): string {
  return text.replaceAll(/[\0"&'+<>]/g, (char) => (char === '+' ? '&#43;' : (htmlEntities[char] ?? char)));
}

/** Replaces a value that is unsafe in its context. */
export const unsafeValue = 'ZgotmplZ';

/** Escapes a value for an attribute without quotes, which white space would end. */
export function escapeUnquoted(text: string): string {
  // An empty value would make the next attribute the value of this one.
  if (text === '') return unsafeValue;
  return text.replaceAll(/[\0\t\n\v\f\r "&'+<=>`\uFDD0-\uFDEF\uFFF0-\uFFFF]/g, (char) => {
    if (char === '\0') return '&#xfffd;';
    if (char >= '\uFDD0') return `&#x${char.charCodeAt(0).toString(16)};`;
    return htmlEntities[char] ?? `&#${char.charCodeAt(0)};`;
  });
}
