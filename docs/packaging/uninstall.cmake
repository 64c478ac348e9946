# SPDX-License-Identifier: BSD-2-Clause
#
# cmake -DMANIFEST=FILE -P uninstall.cmake
#
# Removes each file that cmake --install wrote down in the manifest, and then the folders that are empty, but
# for those that a system has anyway.

if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "there is no ${MANIFEST}: nothing was installed from this build folder")
endif()
file(STRINGS "${MANIFEST}" files)
set(folders "")
foreach(file IN LISTS files)
  file(REMOVE "$ENV{DESTDIR}${file}")
  if(EXISTS "$ENV{DESTDIR}${file}" OR IS_SYMLINK "$ENV{DESTDIR}${file}")
    message(FATAL_ERROR "$ENV{DESTDIR}${file} cannot be removed")
  endif()
  get_filename_component(folder "${file}" DIRECTORY)
  list(APPEND folders "${folder}")
endforeach()

# The prefix is the folder that all files lie below.
list(GET folders 0 prefix)
foreach(folder IN LISTS folders)
  while(NOT "${folder}/" MATCHES "^${prefix}/")
    get_filename_component(prefix "${prefix}" DIRECTORY)
  endwhile()
endforeach()

set(kept "^(/|/opt|/usr|/usr/local|/usr(/local)?/(bin|include|lib|lib64|share|share/man))$")
list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  set(status 0)
  while(status EQUAL 0 AND "${folder}/" MATCHES "^${prefix}/" AND NOT folder MATCHES "${kept}")
    # fails where the folder is not empty
    execute_process(
      COMMAND rmdir "$ENV{DESTDIR}${folder}"
      RESULT_VARIABLE status
      ERROR_QUIET)
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
endforeach()
list(LENGTH files count)
message(STATUS "${count} files removed from $ENV{DESTDIR}${prefix}")
file(REMOVE "${MANIFEST}")
