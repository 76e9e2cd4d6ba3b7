/**
 * Whether two strings are equal, in a time that depends on their lengths only: for secrets that others may guess at.
 */
export function isEqualConstantTime(left: string, right: string): boolean {
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index += 1) {
    difference |= left.charCodeAt(index) ^ right.charCodeAt(index % (right.length || 1));
  }
  return difference === 0;
}
