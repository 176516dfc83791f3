// SPDX-License-Identifier: Apache-2.0
// What a person chose, kept in the browser where it lets us.

export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(`tilekit-${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`tilekit-${name}`, value);
  } catch {
    // then it holds until the page is closed
  }
}
